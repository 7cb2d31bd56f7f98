#include "onnx/model_writer.hpp"
#include "peer/compare.hpp"
#include "runtime/compare.hpp"

// One-layer models over the extents and attributes where kernels change their way of working.
namespace kiln::peer {
namespace {

using test::attr;
using test::message;
using lens = std::vector<std::int64_t>;

struct layer {
  std::string op;
  lens input;
  std::vector<lens> weights;
  std::vector<message> attributes;
  std::string name;
};
void PrintTo(const layer& l, std::ostream* out) { *out << l.name; }

std::vector<layer> layers() {
  std::vector<layer> all;
  const auto add = [&](layer l, const std::string& detail) {
    l.name = l.op + "_" + detail;
    all.push_back(std::move(l));
  };
  const auto convolution = [&](lens x, std::int64_t out, std::int64_t k, std::int64_t stride, std::int64_t pad,
                               std::int64_t group, std::int64_t dilation, const std::string& detail) {
    const lens w = {out, x[1] / group, k, k};
    add({"Conv",
         x,
         {w, {out}},
         {attr("strides", lens{stride, stride}), attr("pads", lens{pad, pad, pad, pad}), attr("group", group),
          attr("dilations", lens{dilation, dilation})},
         {}},
        detail);
  };
  convolution({1, 64, 28, 28}, 64, 3, 1, 1, 1, 1, "3x3");
  convolution({2, 17, 15, 13}, 23, 3, 1, 1, 1, 1, "3x3_odd");
  convolution({1, 32, 29, 31}, 48, 3, 2, 1, 1, 1, "3x3_stride2");
  convolution({1, 128, 14, 14}, 256, 1, 1, 0, 1, 1, "1x1");
  convolution({1, 30, 9, 9}, 14, 1, 2, 0, 1, 1, "1x1_stride2");
  convolution({1, 3, 64, 64}, 32, 7, 2, 3, 1, 1, "7x7_stem");
  convolution({1, 32, 20, 20}, 32, 3, 1, 1, 32, 1, "depthwise");
  convolution({1, 24, 19, 21}, 48, 5, 2, 2, 24, 1, "depthwise_multiplied");
  convolution({1, 24, 16, 16}, 36, 1, 1, 0, 3, 1, "grouped_1x1");
  convolution({2, 16, 12, 12}, 32, 3, 1, 1, 4, 1, "grouped_3x3");
  convolution({1, 16, 24, 24}, 16, 3, 1, 4, 1, 4, "dilated");
  convolution({1, 512, 7, 7}, 512, 3, 1, 1, 1, 1, "3x3_deep");
  for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{1, 4096, 512}, {128, 768, 768}, {7, 33, 65}, {3, 1, 5}})
    add({"Gemm", {m, k}, {{k, n}, {n}}, {}, {}}, std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n));
  add({"Gemm", {7, 33}, {{65, 33}, {65}}, {attr("transB", 1), attr("alpha", 0.5f), attr("beta", 2.0f)}, {}}, "scaled");
  add({"MatMul", {4, 2, 31, 65}, {{65, 17}}, {}, {}}, "batched");
  add({"MatMul", {31, 65}, {{3, 65, 17}}, {}, {}}, "repeated");
  for (const std::int64_t axis : {0, 1, 2})
    add({"Softmax", {5, 257, 31}, {}, {attr("axis", axis)}, {}}, "axis" + std::to_string(axis));
  add({"LogSoftmax", {3, 1000}, {}, {attr("axis", 1)}, {}}, "rows");
  add({"LayerNormalization", {64, 768}, {{768}, {768}}, {attr("axis", -1)}, {}}, "rows");
  add({"LayerNormalization", {4, 7, 33}, {{7, 33}, {7, 33}}, {attr("axis", 1)}, {}}, "two_axes");
  add({"InstanceNormalization", {2, 5, 9, 11}, {{5}, {5}}, {}, {}}, "planes");
  for (const std::string kind : {"MaxPool", "AveragePool"})
    for (const auto& [k, s, p] : {std::array<std::int64_t, 3>{2, 2, 0}, {3, 2, 1}, {3, 1, 1}})
      add({kind,
           {2, 19, 23, 21},
           {},
           {attr("kernel_shape", lens{k, k}), attr("strides", lens{s, s}), attr("pads", lens{p, p, p, p})},
           {}},
          std::to_string(k) + "s" + std::to_string(s));
  add({"GlobalAveragePool", {2, 65, 7, 9}, {}, {}, {}}, "planes");
  add({"LRN", {2, 37, 9, 9}, {}, {attr("size", 5), attr("alpha", 1e-2f), attr("beta", 0.75f), attr("bias", 1.0f)}, {}},
      "channels");
  add({"Transpose", {3, 65, 67, 5}, {}, {attr("perm", lens{0, 2, 1, 3})}, {}}, "middle");
  add({"Transpose", {130, 259}, {}, {attr("perm", lens{1, 0})}, {}}, "matrix");
  add({"ReduceMean", {4, 65, 7, 9}, {}, {attr("axes", lens{2, 3}), attr("keepdims", 0)}, {}}, "planes");
  add({"ReduceL2", {33, 65, 7}, {}, {attr("axes", lens{1}), attr("keepdims", 1)}, {}}, "middle");
  for (const std::string op : {"Erf", "Tanh", "Sigmoid", "Exp", "Softplus", "HardSwish", "Elu", "Sin", "Cos"})
    add({op, {3, 1021}, {}, {}, {}}, "values");
  return all;
}

class operators : public ::testing::TestWithParam<layer> {};

TEST_P(operators, equal_to_onnx_runtime) {
  const layer& l = GetParam();
  test::graph_parts parts;
  test::strings names = {"x"};
  parts.inputs.push_back(test::value_info("x", 1, {l.input.begin(), l.input.end()}));
  unsigned seed = 1;
  for (const lens& w : l.weights) {
    names.push_back("w" + std::to_string(seed));
    shape s{dtype::f32, {}};
    for (const std::int64_t n : w) s.lens.push_back(n);
    const auto values = testing::random_argument(s, ++seed).to<float>();
    parts.initializers.push_back(test::floats(names.back(), w, {values.begin(), values.end()}));
  }
  parts.nodes.push_back(test::node(l.op, names, {"y"}, l.attributes));
  parts.outputs.push_back(test::value_info("y", 1, {}));
  // A result of undeclared rank: ONNX Runtime wants none rather than a wrong one.
  parts.outputs.back() = test::message().text(1, "y").add(2, message().add(1, message().number(1, 1)));
  shape s{dtype::f32, {}};
  for (const std::int64_t n : l.input) s.lens.push_back(n);
  compare_with_peer(test::model(test::graph(parts)).bytes(), ".", {{{"x", testing::random_argument(s, 99, -3, 3)}}});
}

INSTANTIATE_TEST_SUITE_P(layers, operators, ::testing::ValuesIn(layers()), [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace kiln::peer

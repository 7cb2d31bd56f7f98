// What quantized files put between DequantizeLinear and QuantizeLinear: every op gives ONNX Runtime's bytes or their
// neighbors, and the list says what passes through memory on the way.
#include "peer/one_node.hpp"

namespace kiln::peer {
namespace {

enum class way {
  moves,  // bytes are moved or selected, and no step computes
  bytes,  // every step writes bytes
  floats  // a step writes floats for another one
};

struct layer {
  std::string op;
  lens image;
  std::vector<message> attributes = {};
  std::vector<message> constants = {};  // initializers that are inputs 1, 2, … by their order
  way expected = way::bytes;
  std::size_t images = 1;    // dequantized inputs
  bool rescales = true;      // the result has another scale
  std::size_t position = 0;  // of the first image among the inputs
  std::vector<int> outputs = {u8};
};
void PrintTo(const layer& n, std::ostream* out) { *out << n.op; }

message number(std::string_view name, float x) { return test::floats(name, {}, {x}); }
message byte(std::string_view name, int x) {
  return test::tensor<std::uint8_t>(name, u8, {}, {static_cast<std::uint8_t>(x)});
}

// QuantizeLinear(op(DequantizeLinear(x), …)).
message model_of(const layer& n) {
  test::graph_parts parts;
  parts.initializers = {number("xs", .04F), byte("xz", 120), number("ys", n.rescales ? .03F : .04F),
                        byte("yz", n.rescales ? 90 : 120)};
  test::strings in;
  for (std::size_t k = 0; k < n.constants.size(); ++k) {
    parts.initializers.push_back(n.constants[k]);
    in.push_back("c" + std::to_string(k));
  }
  for (std::size_t k = 0; k < n.images; ++k) {
    const std::string x = "x" + std::to_string(k), real = x + "_real";
    parts.inputs.push_back(test::value_info(x, u8, {n.image.begin(), n.image.end()}));
    parts.nodes.push_back(test::node("DequantizeLinear", {x, "xs", "xz"}, {real}));
    in.insert(in.begin() + static_cast<std::ptrdiff_t>(n.position + k), real);
  }
  test::strings made;
  for (std::size_t k = 0; k < n.outputs.size(); ++k) made.push_back("made" + std::to_string(k));
  parts.nodes.push_back(test::node(n.op, in, made, n.attributes));
  for (std::size_t k = 0; k < n.outputs.size(); ++k) {
    const std::string y = "y" + std::to_string(k);
    if (n.outputs[k] == u8)
      parts.nodes.push_back(test::node("QuantizeLinear", {made[k], "ys", "yz"}, {y}));
    else
      parts.nodes.push_back(test::node("Identity", {made[k]}, {y}));
    parts.outputs.push_back(test::message().text(1, y).add(2, message().add(1, message().number(1, n.outputs[k]))));
  }
  return test::model(test::graph(parts));
}

way way_of(const compile_report& report) {
  way found = way::moves;
  for (const step_info& s : report.steps) {
    for (const shape& y : s.outputs)
      if (y.type == dtype::f32) return way::floats;
    if (s.kernel.find("pointwise") != s.kernel.npos || s.kernel.find("reduce") != s.kernel.npos ||
        s.kernel.find("mean (bytes)") != s.kernel.npos)
      found = way::bytes;
  }
  return found;
}

std::vector<layer> all_layers() {
  const lens image{2, 6, 8, 7};
  const auto axes = [](std::string_view name, const lens& v) { return test::integers(name, {std::ssize(v)}, v); };
  const auto pool = std::vector<message>{attr("kernel_shape", lens{3, 3}), attr("strides", lens{2, 2}),
                                         attr("pads", lens{1, 1, 1, 1})};
  const auto floats = [](std::string_view name, std::int64_t n, float first) {
    std::vector<float> v;
    for (std::int64_t k = 0; k < n; ++k) v.push_back(first + .1F * static_cast<float>(k));
    return test::floats(name, {n}, v);
  };
  std::vector<layer> all = {
      {"Reshape", image, {}, {axes("c0", {2, 48, 7})}, way::moves, 1, false},
      {"Transpose", image, {attr("perm", lens{0, 2, 3, 1})}, {}, way::moves, 1, false},
      {"Squeeze", {2, 1, 9}, {}, {axes("c0", {1})}, way::moves, 1, false},
      {"Unsqueeze", {2, 9}, {}, {axes("c0", {1})}, way::moves, 1, false},
      {"Flatten", image, {attr("axis", 1)}, {}, way::moves, 1, false},
      {"Slice", image, {}, {axes("c0", {1, 2}), axes("c1", {5, 7}), axes("c2", {1, 2})}, way::moves, 1, false},
      {"Gather", image, {attr("axis", 1)}, {axes("c0", {4, 0, 1, 1})}, way::moves, 1, false},
      {"GatherElements",
       {3, 4},
       {attr("axis", 1)},
       {test::integers("c0", {3, 2}, {0, 3, 1, 1, 2, 0})},
       way::moves,
       1,
       false},
      {"Pad", image, {}, {axes("c0", {0, 0, 1, 2, 0, 0, 2, 0}), number("c1", .4F)}, way::moves, 1, false},
      {"Concat", image, {attr("axis", 1)}, {}, way::moves, 3, false},
      {"MaxPool", image, pool, {}, way::moves, 1, false},
      {"Split", image, {attr("axis", 1)}, {axes("c0", {2, 4})}, way::moves, 1, false, 0, {u8, u8}},
      // others compute
      {"MaxPool", image, pool},
      {"Concat", image, {attr("axis", 1)}, {}, way::bytes, 2},
      {"Relu", image},
      {"Clip", image, {}, {number("c0", -.5F), number("c1", 1.5F)}},
      {"Sigmoid", image},
      {"Tanh", image},
      {"LeakyRelu", image, {attr("alpha", .2F)}},
      {"HardSwish", image},
      {"HardSigmoid", image},
      {"Add", image, {}, {}, way::bytes, 2},
      {"Mul", image, {}, {}, way::bytes, 2},
      {"Softmax", {3, 5, 40}, {attr("axis", -1)}},
      {"AveragePool", image, pool, {}, way::floats},
      {"GlobalAveragePool", image},
      {"InstanceNormalization", image, {}, {floats("c0", 6, .8F), floats("c1", 6, -.2F)}},
      {"Where", {3, 4}, {}, {test::tensor<std::uint8_t>("c0", boolean, {4}, {1, 0, 0, 1})}, way::bytes, 2, false, 1},
      {"TopK", {3, 40}, {}, {axes("c0", {5})}, way::floats, 1, false, 0, {u8, i64}},
      {"Resize",
       image,
       {attr("mode", "nearest")},
       {test::floats("c0", {0}, {}), test::floats("c1", {4}, {1, 1, 2, 2})},
       way::moves,
       1,
       false},
      {"LayerNormalization", {3, 5, 40}, {attr("axis", -1)}, {floats("c0", 40, -1), floats("c1", 40, -.2F)}},
  };
  return all;
}

class quantized_layers : public ::testing::TestWithParam<layer> {};

TEST_P(quantized_layers, within_one_byte_of_onnx_runtime) {
  const layer& n = GetParam();
  const message model = model_of(n);
  const auto bytes = model.bytes();
  const executable own = compile(onnx::parse_model(bytes).graph, eigen_target());
  std::string steps;
  for (const step_info& s : own.report().steps) steps += s.kernel + '\n';
  EXPECT_EQ(static_cast<int>(way_of(own.report())), static_cast<int>(n.expected)) << steps;
  const auto path = library();
  if (!path) GTEST_SKIP() << "ONNX Runtime is not in build/peer (cmake/peer.sh)";
  const session peer(*path, bytes);
  std::map<std::string, argument> given;
  shape s{dtype::u8, {}};
  for (const std::int64_t k : n.image) s.lens.push_back(k);
  for (std::size_t k = 0; k < n.images; ++k)
    given.emplace("x" + std::to_string(k), testing::random_argument(s, static_cast<unsigned>(k) + 3, 0, 255));
  const auto found = own.run(given), expected = peer.run(given);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    ASSERT_EQ(found[k].get_shape(), expected[k].get_shape());
    const auto x = found[k].to<double>(), y = expected[k].to<double>();
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_LE(std::fabs(x[i] - y[i]), n.expected == way::moves ? 0 : 1) << n.op << " at " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(all, quantized_layers, ::testing::ValuesIn(all_layers()),
                         [](const auto& info) { return info.param.op + std::to_string(info.index); });

}  // namespace
}  // namespace kiln::peer

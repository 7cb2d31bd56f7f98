#include <gmock/gmock.h>

#include "kiln/onnx/export.hpp"
#include "kiln/quantize/int4.hpp"
#include "peer/compare.hpp"
#include "runtime/compare.hpp"

// Quantized programs in every form of file give the same bits in kiln and, within a quantum, the same in ONNX Runtime.
namespace kiln::peer {
namespace {

using namespace quantize;

struct network {
  std::string name;
  std::function<void(builder&)> make;
  std::vector<std::string> operators;  ///< that its file has
};
void PrintTo(const network& n, std::ostream* out) { *out << n.name; }

value weights(builder& b, const dims& lens, unsigned seed) {
  return b.constant(testing::random_argument({dtype::f32, lens}, seed).to_literal());
}

std::vector<network> networks() {
  return {
      {"convolutions",
       [](builder& b) {
         const value x = b.input("x", dtype::f32, {2, 3, 9, 8});
         const value a = x.conv(weights(b, {6, 3, 3, 3}, 1), {.pads = {1, 1, 1, 1}}).add_along(1, weights(b, {6}, 2));
         const value c = a.relu().pool({.lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}});
         const value d = c.conv(weights(b, {6, 2, 1, 1}, 3), {.group = 3}).add_along(1, weights(b, {6}, 4));
         const value e = (d + c).relu();
         const value f = e.pool({.mode = op::pooling_mode::average, .lengths = {2, 2}});
         const value g = f.reduce_mean({2, 3}).reshape({2, 6}).dot(weights(b, {6, 5}, 5)) + weights(b, {5}, 6);
         b.output(g, "y");
       },
       {"QLinearConv", "QLinearAdd", "QLinearAveragePool", "QLinearGlobalAveragePool", "QGemm", "MaxPool"}},
      {"bounded_sums",
       [](builder& b) {
         const value x = b.input("x", dtype::f32, {1, 4, 6, 6});
         const auto bound = [&](float v) { return b.scalar(dtype::f32, v); };
         const value a = x.conv(weights(b, {4, 4, 3, 3}, 1), {.stride = {2, 2}}).add_along(1, weights(b, {4}, 2));
         const value clipped = b.add(op::clip{}, a, bound(-.25F), bound(.5F));
         const value c = clipped.conv(weights(b, {4, 4, 1, 1}, 3));
         b.output((c * clipped).leaky_relu({.2F}).sigmoid().concat(clipped, 1).conv(weights(b, {2, 8, 2, 2}, 4)), "y");
       },
       {"QLinearConv", "QLinearMul", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearConcat"}},
      {"matrices",
       [](builder& b) {
         const value x = b.input("x", dtype::f32, {10, 8}), keep = b.input("keep", dtype::boolean, {10, 1});
         const value h = x.dot(weights(b, {8, 12}, 1)), k = x.dot(weights(b, {8, 12}, 2)) + weights(b, {12}, 3);
         const value s = b.add(op::where{}, keep, h, k).softmax();
         b.output(s.reshape({2, 5, 12}).transpose({1, 0, 2}).reshape({10, 12}).dot(weights(b, {12, 7}, 4)), "y");
         b.output((k + h).dot(weights(b, {12, 3}, 5)) + weights(b, {3}, 6), "z");
       },
       {"QLinearMatMul", "QGemm", "QLinearWhere", "QLinearSoftmax", "QLinearAdd", "MatMulIntegerToFloat"}},
      {"batches",  // of one matrix, which folding writes out, and of matrices that differ
       [](builder& b) {
         const value x = b.input("x", dtype::f32, {4, 7, 16});
         const value h = x.dot(weights(b, {16, 8}, 1).broadcast_to({4, 16, 8})).relu();
         b.output(h.dot(weights(b, {4, 8, 6}, 2)).dot(weights(b, {6, 5}, 3).broadcast_to({4, 6, 5})), "y");
       },
       {"QLinearMatMul"}},
  };
}

std::map<std::string, argument> inputs_for(const program& p, unsigned seed) {
  std::map<std::string, argument> given;
  for (const value_id v : p.main().parameters())
    given.emplace(p.main().producer(v).name.str(), testing::random_argument(p.main().shape_of(v), ++seed));
  return given;
}
program quantized_network(const network& n, const int8_options& options) {
  builder b;
  n.make(b);
  const program p = prepared(b.finish());
  unsigned seed = 100;
  const calibration_data data = [&]() -> std::optional<sample> {
    if (seed == 106) return std::nullopt;
    return sample(inputs_for(p, 10 * ++seed));
  };
  return to_int8(p, calibrate(p, values_to_quantize(p, options), eigen_target(), data), options).graph;
}

class quantized_files : public ::testing::TestWithParam<network> {};

TEST_P(quantized_files, are_alike_in_both_forms) {
  const auto path = library();
  for (const bool symmetric : {false, true})
    for (const dtype activations : {dtype::u8, dtype::i8})
      for (const bool per_channel : {true, false}) {
        SCOPED_TRACE(::testing::Message() << to_string(activations) << symmetric << per_channel);
        int8_options options{.activations = activations, .symmetric = symmetric, .results = true};
        options.weights.per_channel = per_channel;
        const program p = quantized_network(GetParam(), options);
        const auto given = inputs_for(p, 3);
        const auto expected = compile(p, eigen_target()).run(given);
        for (const onnx::quantized_form form : {onnx::quantized_form::qdq, onnx::quantized_form::qoperator}) {
          SCOPED_TRACE(to_string(form));
          const std::string bytes = onnx::export_model(p, {.form = form});
          const auto model = std::as_bytes(std::span(bytes.data(), bytes.size()));
          for (const std::string& op : GetParam().operators)
            EXPECT_TRUE(form == onnx::quantized_form::qdq || bytes.find(op) != std::string::npos) << op;
          const program again = onnx::parse_model(model).graph;
          const auto found = compile(again, eigen_target()).run(given);
          for (std::size_t k = 0; k < found.size(); ++k) {
            // QGemm with a result of floats adds its bias before it scales, which rounds once less
            const auto x = found[k].to<double>(), y = expected[k].to<double>();
            EXPECT_THAT(std::vector(x.begin(), x.end()), ::testing::Pointwise(::testing::DoubleNear(4e-6), y)) << k;
          }
          if (path) expect_equal_outputs(session(*path, model).run(given), expected, 2e-2);
        }
      }
  if (!path) GTEST_SKIP() << "ONNX Runtime is not in build/peer (cmake/peer.sh)";
}

// DequantizeLinear with blocks is what ONNX Runtime reads alike; it makes products of it that round to eight bits.
TEST(weights_in_blocks, are_read_alike_in_qdq) {
  for (const std::int64_t bits : {4, 8})
    for (const std::int64_t block : {16, 32, 128})
      for (const bool symmetric : {true, false}) {
        SCOPED_TRACE(::testing::Message()
                     << bits << " bits in blocks of " << block << (symmetric ? ", symmetric" : ""));
        builder b;
        const value x = b.input("x", dtype::f32, {3, 72});
        b.output(x.dot(weights(b, {72, 80}, 2)).relu().dot(weights(b, {80, 33}, 3)), "y");
        const program p = to_int4(prepared(b.finish()), {.format = {bits, block, symmetric}}).graph;
        const std::string bytes = onnx::export_model(p, {.form = onnx::quantized_form::qdq});
        compare_with_peer(std::as_bytes(std::span(bytes.data(), bytes.size())), ".", {inputs_for(p, 3)}, 1e-2);
      }
}

INSTANTIATE_TEST_SUITE_P(networks, quantized_files, ::testing::ValuesIn(networks()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace kiln::peer

#include <fstream>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/quantize/int8.hpp"
#include "onnx/model_writer.hpp"
#include "peer/compare.hpp"
#include "runtime/compare.hpp"

// Networks with QuantizeLinear and DequantizeLinear, those that kiln writes and those of any operator set.
namespace kiln::peer {
namespace {

using namespace quantize;
using testing::random_argument;

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s.data(), s.size())); }

// The places of the greatest of each row of ten.
std::vector<std::size_t> answers(const argument& rows) {
  const auto values = rows.to<float>();
  std::vector<std::size_t> out;
  for (std::size_t at = 0; at < values.size(); at += 10)
    out.push_back(static_cast<std::size_t>(std::max_element(&values[at], &values[at] + 10) - &values[at]));
  return out;
}

// In every form of its scales, ONNX Runtime gives the answers that kiln gives: those of the network in floats, of which
// the bytes may lose two of 360.
TEST(quantized_networks, digits_in_every_form_gives_the_same_answers) {
  const std::string folder = std::string(KILN_SOURCE_DIR) + "/examples/models/digits/";
  const program p = prepared(onnx::read_model(folder + "model.onnx").graph);
  const argument training = onnx::read_tensor(folder + "calibration.pb").value,
                 scans = onnx::read_tensor(folder + "test_data_set_0/input_0.pb").value;
  const eigen_target t;
  const std::vector<std::size_t> exact = answers(compile(p, t).run(std::vector<argument>{scans})[0]);
  const ranges known = calibrate(p, values_to_quantize(p), t, [&, given = false]() mutable -> std::optional<sample> {
    if (std::exchange(given, true)) return std::nullopt;
    return sample{{"image", training}};
  });
  const auto path = library();
  if (!path) GTEST_SKIP() << "ONNX Runtime is not in build/peer (cmake/peer.sh)";
  for (const dtype activations : {dtype::u8, dtype::i8})
    for (const bool symmetric : {false, true})
      for (const bool per_channel : {false, true})
        for (const bool reduced : {false, true}) {
          SCOPED_TRACE(::testing::Message() << to_string(activations) << (symmetric ? " symmetric" : "")
                                            << (per_channel ? " per channel" : "") << (reduced ? " reduced" : ""));
          const int8_options how{.activations = activations,
                                 .symmetric = symmetric,
                                 .reduced = reduced,
                                 .weights = {.per_channel = per_channel}};
          const std::string bytes = onnx::export_model(to_int8(p, known, how).graph);
          const session peer(*path, bytes_of(bytes));
          const std::map<std::string, argument> in{{"image", scans}};
          const auto found = compile(onnx::parse_model(bytes_of(bytes)).graph, t).run(in), expected = peer.run(in);
          expect_equal_outputs(found, expected, .03);
          std::size_t apart = 0, lost = 0;
          const auto ours = answers(found[0]), theirs = answers(expected[0]);
          for (std::size_t k = 0; k < ours.size(); ++k) apart += ours[k] != theirs[k], lost += ours[k] != exact[k];
          EXPECT_EQ(apart, 0u);
          EXPECT_LE(lost, 2u);
        }
}

// A product whose operands and result are of these types, written for an operator set.
struct qdq_case {
  std::int64_t opset;
  int activation, weight;  // TensorProto.DataType
  bool per_channel;
  const char* domain = "";  // of QuantizeLinear and DequantizeLinear
};

constexpr int u8 = 2, i8 = 3, u16 = 4, i16 = 5;

template <class F> void with_type(int type, F&& f) {
  type == u8 ? f(std::uint8_t{}) : type == i8 ? f(std::int8_t{}) : type == u16 ? f(std::uint16_t{}) : f(std::int16_t{});
}

test::message zero_point(const std::string& name, int type, int value) {
  test::message out;
  with_type(type, [&]<class T>(T) { out = test::tensor(name, type, {}, std::vector<T>{static_cast<T>(value)}); });
  return out;
}

test::message model_of(const qdq_case& c) {
  using test::attr, test::floats, test::node;
  constexpr std::int64_t depth = 24, width = 10;
  const bool wide = c.activation == u16 || c.activation == i16;
  const bool is_signed = c.activation == i8 || c.activation == i16;
  const float scale = wide ? 2e-4f : .05f;
  test::graph_parts g;
  g.inputs = {test::value_info("x", 1, {3, depth})};
  g.outputs = {test::value_info("y", 1, {3, width})};
  g.initializers = {floats("x_scale", {}, {scale}), zero_point("x_zero", c.activation, is_signed ? -3 : 111),
                    floats("y_scale", {}, {scale * 4}), zero_point("y_zero", c.activation, is_signed ? 7 : 130)};
  with_type(c.weight, [&]<class T>(T) {
    std::vector<T> w;
    for (std::int64_t k = 0; k < depth * width; ++k)
      w.push_back(static_cast<T>((k * 37 + 11) % 251 - (c.weight == i8 ? 125 : 0)));
    g.initializers.push_back(test::tensor("w", c.weight, {depth, width}, w));
    std::vector<float> scales;
    for (int k = 0; k < width; ++k) scales.push_back(.004f + .0005f * static_cast<float>(k));
    if (!c.per_channel) scales.resize(1);
    const std::vector<std::int64_t> lens =
        c.per_channel ? std::vector<std::int64_t>{width} : std::vector<std::int64_t>{};
    g.initializers.push_back(floats("w_scale", lens, scales));
    g.initializers.push_back(test::tensor("w_zero", c.weight, lens,
                                          std::vector<T>(scales.size(), static_cast<T>(c.weight == u8 ? 128 : 0))));
  });
  const std::vector<test::message> axis =
      c.per_channel ? std::vector<test::message>{attr("axis", 1)} : std::vector<test::message>{};
  g.nodes = {node("QuantizeLinear", {"x", "x_scale", "x_zero"}, {"xq"}, {}, "", c.domain),
             node("DequantizeLinear", {"xq", "x_scale", "x_zero"}, {"xr"}, {}, "", c.domain),
             node("DequantizeLinear", {"w", "w_scale", "w_zero"}, {"wr"}, axis),
             node("MatMul", {"xr", "wr"}, {"p"}),
             node("Relu", {"p"}, {"r"}),
             node("QuantizeLinear", {"r", "y_scale", "y_zero"}, {"yq"}, {}, "", c.domain),
             node("DequantizeLinear", {"yq", "y_scale", "y_zero"}, {"y"}, {}, "", c.domain)};
  std::vector<test::message> opsets{test::opset(c.opset)};
  if (*c.domain) opsets.push_back(test::opset(1, c.domain));
  return test::model(test::graph(g), opsets);
}

// Within one quantum of the result.
TEST(quantized_networks, products_of_all_types_and_operator_sets_are_a_quantum_apart_at_most) {
  const auto path = library();
  if (!path) GTEST_SKIP() << "ONNX Runtime is not in build/peer (cmake/peer.sh)";
  const char* const microsoft = "com.microsoft";
  std::vector<qdq_case> cases;
  for (const std::int64_t opset : {13, 19, 21})
    for (const bool per_channel : {false, true}) {
      for (const int activation : {u8, i8})
        for (const int weight : {u8, i8}) cases.push_back({opset, activation, weight, per_channel});
      for (const int activation : {u16, i16})
        cases.push_back({opset, activation, i8, per_channel, opset < 21 ? microsoft : ""});
    }
  const std::map<std::string, argument> in{{"x", random_argument({dtype::f32, {3, 24}}, 5, -4, 4)}};
  for (const qdq_case& c : cases) {
    SCOPED_TRACE(::testing::Message() << "opset " << c.opset << ", types " << c.activation << " and " << c.weight
                                      << (c.per_channel ? ", per channel" : ""));
    const test::message m = model_of(c);
    const session peer(*path, m.bytes());
    const auto found = compile(onnx::parse_model(m.bytes()).graph, eigen_target()).run(in)[0].to<float>();
    const auto expected = peer.run(in)[0].to<float>();
    const float quantum = c.activation == u16 || c.activation == i16 ? 8e-4f : .2f;
    ASSERT_EQ(found.size(), expected.size());
    float greatest = 0;
    for (std::size_t k = 0; k < found.size(); ++k) {
      EXPECT_LE(std::abs(found[k] - expected[k]), 1.01f * quantum) << k;
      greatest = std::max(greatest, expected[k]);
    }
    EXPECT_GT(greatest, 20 * quantum);
  }
}

}  // namespace
}  // namespace kiln::peer

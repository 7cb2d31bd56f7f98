#include <cmath>

#include "kiln/graph/builder.hpp"
#include "kiln/onnx/export.hpp"
#include "onnx/one_operator.hpp"

// Casts and linear quantization to and from numbers of at most eight bits, by the tables of ONNX's specification.
namespace kiln::test {
namespace {

constexpr int f32 = 1, f16 = 10, e4m3fn = 17, e4m3fnuz = 18, e5m2 = 19, e5m2fnuz = 20, u4 = 21, i4 = 22, e2m1 = 23,
              e8m0 = 24, u2 = 25, i2 = 26;

std::vector<float> cast(int to, const std::vector<float>& x, std::vector<message> more = {}, int from = f32) {
  more.push_back(attr("to", to));
  return compute({.op = "Cast", .version = 25, .attributes = more, .type = from},
                 {{{static_cast<std::int64_t>(x.size())}, x}})
      .values;
}
const float inf = INFINITY;

TEST(narrow_cast, saturates_unless_told_not_to) {
  const std::vector<float> x{1e9f, -1e9f, inf, 0.3f, -0.0f};
  EXPECT_EQ(cast(e4m3fn, x), (std::vector<float>{448, -448, 448, 0.3125f, 0}));
  EXPECT_EQ(cast(e5m2, x), (std::vector<float>{57344, -57344, 57344, 0.3125f, 0}));
  EXPECT_EQ(cast(e4m3fnuz, {300, -300}), (std::vector<float>{240, -240}));
  EXPECT_EQ(cast(e5m2fnuz, {1e6f}), (std::vector<float>{57344}));
  const auto kept = cast(e5m2, x, {attr("saturate", 0)});
  EXPECT_EQ(kept[0], inf);
  EXPECT_EQ(kept[1], -inf);
  for (const int to : {e4m3fn, e4m3fnuz, e5m2fnuz}) EXPECT_TRUE(std::isnan(cast(to, x, {attr("saturate", 0)})[0]));
  for (const int to : {e4m3fn, e4m3fnuz, e5m2, e5m2fnuz}) EXPECT_TRUE(std::isnan(cast(to, {NAN})[0]));
  EXPECT_EQ(cast(e4m3fn, {60000}, {}, f16), (std::vector<float>{448}));
}

TEST(narrow_cast, four_bits_saturate_always_and_integers_wrap) {
  EXPECT_EQ(cast(e2m1, {2.5f, 7, -100, 0.2f}), (std::vector<float>{2, 6, -6, 0}));
  EXPECT_EQ(cast(e2m1, {NAN}), (std::vector<float>{0}));
  EXPECT_EQ(cast(i4, {-9, 7.9f, 8}), (std::vector<float>{7, 7, -8}));
  EXPECT_EQ(cast(u4, {15, 16, 3.7f}), (std::vector<float>{15, 0, 3}));
  EXPECT_EQ(cast(i2, {-2, 1, 2}), (std::vector<float>{-2, 1, -2}));
  EXPECT_EQ(cast(u2, {3, 4}), (std::vector<float>{3, 0}));
}

TEST(narrow_cast, scales_round_by_the_mode) {
  const std::vector<float> x{1, 1.1f, 1.5f, 2.9f, 3, -3, 3e38f};
  EXPECT_EQ(cast(e8m0, x), (std::vector<float>{1, 2, 2, 4, 4, 4, 0x1p127f}));
  EXPECT_EQ(cast(e8m0, x, {attr("round_mode", "down")}), (std::vector<float>{1, 1, 1, 2, 2, 2, 0x1p127f}));
  EXPECT_EQ(cast(e8m0, x, {attr("round_mode", "nearest")}), (std::vector<float>{1, 1, 2, 2, 4, 4, 0x1p127f}));
  for (const char* mode : {"up", "nearest"})
    EXPECT_TRUE(std::isnan(cast(e8m0, {3e38f}, {attr("round_mode", mode), attr("saturate", 0)})[0])) << mode;
  EXPECT_TRUE(std::isnan(cast(e8m0, {inf})[0]));
  EXPECT_THROW(cast(e8m0, x, {attr("round_mode", "sideways")}), error);
}

// Three inputs: x, a scale, and a zero point that states the type.
std::vector<float> quantize(int type, const std::vector<float>& x, std::vector<message> more = {},
                            std::int64_t version = 25) {
  more.push_back(attr("output_dtype", type));
  return compute({.op = "QuantizeLinear", .version = version, .attributes = more},
                 {{{static_cast<std::int64_t>(x.size())}, x}, constant({}, {2})})
      .values;
}

TEST(narrow_quantize, rounds_to_even_and_saturates) {
  EXPECT_EQ(quantize(i4, {5, 7, 100, -100}), (std::vector<float>{2, 4, 7, -8}));
  EXPECT_EQ(quantize(u4, {5, 100, -1}), (std::vector<float>{2, 15, 0}));
  EXPECT_EQ(quantize(i2, {2, 100, -100}), (std::vector<float>{1, 1, -2}));
  EXPECT_EQ(quantize(u2, {2, 100, -100}), (std::vector<float>{1, 3, 0}));
  EXPECT_EQ(quantize(e4m3fn, {3, 5000}), (std::vector<float>{1.5f, 448}));
  EXPECT_TRUE(std::isnan(quantize(e4m3fn, {5000}, {attr("saturate", 0)})[0]));
  EXPECT_EQ(quantize(e2m1, {3, 5000}), (std::vector<float>{1.5f, 6}));
  EXPECT_THROW(quantize(f32, {1}), error);
}

TEST(narrow_quantize, the_division_is_as_precise_as_the_scale_or_the_node_says) {
  const auto ratio = [](std::vector<message> more, std::int64_t version) {
    more.push_back(attr("output_dtype", 5));  // i16
    // 1234.5 / 0.7 is 1763.57 in f32, and in f16 numbers near are one apart
    return compute({.op = "QuantizeLinear", .version = version, .attributes = more, .type = f16},
                   {{{1}, {2049.0f}}, {{}, {0.7f}}})
        .values[0];
  };
  const float x = 2048, scale = 0.7001953125f;  // as f16 holds them
  EXPECT_EQ(ratio({}, 25), std::nearbyint(float(half(x / scale))));
  EXPECT_EQ(ratio({attr("precision", f32)}, 25), std::nearbyint(x / scale));
  EXPECT_EQ(ratio({}, 21), std::nearbyint(x / scale));
  EXPECT_NE(ratio({}, 25), ratio({}, 21));
}

TEST(narrow_dequantize, reads_blocks_of_packed_numbers) {
  graph_parts parts;
  parts.initializers = {tensor<std::uint8_t>("x", i4, {2, 4}, {0x21, 0x43, 0xfe, 0xdc}),
                        floats("scale", {2, 2}, {1, 10, 100, 1000}),
                        tensor<std::uint8_t>("zero", i4, {2, 2}, {0x10, 0x0f})};
  parts.nodes = {node("DequantizeLinear", {"x", "scale", "zero"}, {"y"}, {attr("axis", 1), attr("block_size", 2)})};
  parts.outputs = {value_info("y")};
  const auto run = [&] {
    return evaluate(onnx::parse_model(model(graph(parts), {opset(25)}).bytes()).graph, {})[0].to<float>();
  };
  EXPECT_EQ(run(), (small_vector<float>{1, 2, 20, 30, -100, 0, -4000, -3000}));
  parts.nodes = {node("DequantizeLinear", {"x", "scale"}, {"y"}, {attr("block_size", 2), attr("output_dtype", f16)})};
  parts.initializers[1] = tensor<std::uint8_t>("scale", e8m0, {2, 2}, {127, 128, 129, 130});
  EXPECT_EQ(run(), (small_vector<float>{1, 2, 6, 8, -8, -4, -32, -24}));
}

TEST(narrow_dequantize, gathers_rows_of_blocks) {
  graph_parts parts;
  parts.initializers = {tensor<std::uint8_t>("data", i4, {2, 4}, {0x21, 0x43, 0xfe, 0xdc}),
                        integers("rows", {2}, {1, 0}), floats("scale", {2, 2}, {1, 10, 100, 1000}),
                        tensor<std::uint8_t>("zero", i4, {2, 2}, {0x10, 0x0f})};
  parts.nodes = {node("GatherBlockQuantized", {"data", "rows", "scale", "zero"}, {"y"}, {attr("block_size", 2)}, "",
                      "com.microsoft")};
  parts.outputs = {value_info("y")};
  const auto p = onnx::parse_model(model(graph(parts), {opset(21), opset(1, "com.microsoft")}).bytes()).graph;
  EXPECT_EQ(evaluate(p, {})[0].to<float>(), (small_vector<float>{-100, 0, -4000, -3000, 1, 2, 20, 30}));
}

TEST(narrow_types, are_exported_and_imported) {
  for (std::size_t k = dtype_count; k < all_dtypes; ++k) {
    const auto t = static_cast<dtype>(k);
    if (is_object(t)) continue;
    builder b;
    const float kept[] = {1, 2, 0.5f}, given[] = {0.6f, 2.2f, 500};
    const value x = b.input("x", dtype::f32, {3});
    b.output(x.convert(t), "y");
    b.output(b.constant(literal::of<float>({t, {3}}, kept)).transpose({0}), "w");
    const program p = b.finish();
    const std::string bytes = onnx::export_model(p);
    const program q = onnx::parse_model(std::as_bytes(std::span(bytes.data(), bytes.size()))).graph;
    const small_vector<argument> in{argument::of<float>({3}, given)};
    const auto before = evaluate(p, in), after = evaluate(q, in);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(before[i].to_literal(), after[i].to_literal()) << to_string(t);
  }
}

TEST(narrow_types, move_through_views_and_indexing) {
  for (const int type : {e4m3fn, e2m1, i4, u2}) {
    graph_parts parts;
    parts.inputs = {value_info("x", type, {2, 2})};
    parts.initializers = {integers("i", {1}, {1}), integers("s", {2}, {1, 4})};
    parts.nodes = {node("Transpose", {"x"}, {"t"}), node("Gather", {"t", "i"}, {"g"}, {attr("axis", 0)}),
                   node("Concat", {"t", "g"}, {"c"}, {attr("axis", 0)}), node("Identity", {"c"}, {"y"})};
    parts.outputs = {value_info("y")};
    const float values[] = {0, 1, 2, 3};
    const shape s{*onnx::to_dtype(static_cast<onnx::element>(type)), {2, 2}};
    const argument out = evaluate(onnx::parse_model(model(graph(parts), {opset(25)}).bytes()).graph,
                                  {argument(literal::of<float>(s, values))})[0];
    EXPECT_EQ(out.get_shape(), shape(s.type, {3, 2}));
    EXPECT_EQ(out.to<float>(), (small_vector<float>{0, 2, 1, 3, 1, 3}));
  }
  EXPECT_THROW(compute({.op = "Add", .version = 25, .type = e4m3fn}, {{{1}, {1}}, {{1}, {1}}}), error);
}

}  // namespace
}  // namespace kiln::test

#include "kiln/pass/float8_products.hpp"

#include "kiln/op/quant/block_dequantize.hpp"
#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/op/quant/quantize_linear.hpp"
#include "kiln/pass/expand_quantization.hpp"
#include "kiln/pass/simplify_views.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

// Numbers that floats of eight bits have exactly.
value numbers(builder& b, dtype t, const dims& lens) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < product(lens).value(); ++i) x.push_back(static_cast<float>((i * 37 + 5) % 17 - 8) / 4);
  return b.constant<float>(t, lens, x);
}
value scales(builder& b, std::int64_t n) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(0.25f + static_cast<float>(i % 5) / 8);
  return b.constant<float>(dtype::f32, {n}, x);
}
// The left operand: x quantized to `t` by a scale, and dequantized.
value stored_and_back(builder& b, value x, dtype t, value scale) {
  const value q = b.add(op::quantize_linear{t, 0}, x, scale);
  return q.convert(dtype::f32) * scale.broadcast_to(x.get_shape().lens);
}
value weights(builder& b, dtype t, const dims& lens, std::int64_t axis) {
  const auto at = static_cast<std::size_t>(axis);
  return b.add(op::dequantize_linear{axis}, numbers(b, t, lens), scales(b, lens[at].value()));
}
template <class Build> program rewritten(Build build) {
  program p = built<builder>(build);
  expand_quantization(p);
  float8_products(p);
  simplify_views(p);
  verify(p);
  return p;
}
std::size_t products_in(const program& p, bool of_bytes) {
  std::size_t n = 0;
  const auto& m = p.main();
  for (std::uint32_t i = 0; i < m.size(); ++i)
    if (m[i].kind == instruction_kind::op) n += of_bytes ? m[i].op.is<op::float8_dot>() : m[i].op.is<op::dot>();
  return n;
}
template <class Build> void expect_products(Build build, std::size_t count = 1) {
  const program p = rewritten(build);
  EXPECT_EQ(products_in(p, true), count) << print(p).view();
  EXPECT_EQ(products_in(p, false), 0u) << print(p).view();
  EXPECT_TRUE(same_results(built<builder>(build), p, 1e-6)) << print(p).view();
}
template <class Build> void expect_unchanged(Build build) {
  const program p = rewritten(build);
  EXPECT_EQ(products_in(p, true), 0u) << print(p).view();
}

TEST(float8_products, scales_follow_the_product) {
  for (const dtype t : {dtype::f8e4m3fn, dtype::f8e5m2})
    for (const std::int64_t axis : {std::int64_t{1}, std::int64_t{0}})  // columns that lie first are turned
      expect_products([&](builder& b) {
        const value x = stored_and_back(b, b.input("x", dtype::f32, {3, 32}), t, b.scalar(dtype::f32, 0.5f));
        b.output(axis == 1 ? x.dot(weights(b, t, {32, 5}, 1)) : x.dot(weights(b, t, {5, 32}, 0).transpose({1, 0})));
      });
}
TEST(float8_products, one_scale_for_a_matrix) {
  expect_products([](builder& b) {
    const value x = stored_and_back(b, b.input("x", dtype::f32, {3, 16}), dtype::f8e4m3fn, b.scalar(dtype::f32, 0.5f));
    const value w = numbers(b, dtype::f8e4m3fn, {16, 5});
    b.output(x.dot(b.add(op::dequantize_linear{0}, w, b.scalar(dtype::f32, 0.75f))));
  });
}
// A batch that shares the matrix, views between scale and product, two products of one value.
TEST(float8_products, batches_and_views) {
  expect_products(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {2, 3, 4, 8});
        const value y = stored_and_back(b, x, dtype::f8e4m3fn, b.scalar(dtype::f32, 0.5f)).reshape({2, 3, 32});
        for (const std::int64_t columns : {5, 7})
          b.output(y.dot(weights(b, dtype::f8e4m3fn, {32, columns}, 1).broadcast_to({2, 32, columns})));
      },
      2);
}
// Scales that a run gives: of the tensor, and of each row.
TEST(float8_products, scales_of_a_run) {
  for (const dims& lens : {dims{}, dims{2, 3, 1}})
    expect_products([&](builder& b) {
      const value q = b.input("q", dtype::f8e4m3fn, {2, 3, 16});
      const value scale = b.input("scale", dtype::f32, lens).broadcast_to({2, 3, 16});
      const value w = weights(b, dtype::f8e4m3fn, {16, 5}, 1).broadcast_to({2, 16, 5});
      b.output((q.convert(dtype::f32) * scale).dot(w).relu());
    });
}
TEST(float8_products, what_stays) {
  const auto product = [](builder& b, dtype left, dtype right, std::int64_t depth, std::int64_t axis) {
    const value x = stored_and_back(b, b.input("x", dtype::f32, {3, depth}), left, b.scalar(dtype::f32, 0.5f));
    b.output(x.dot(weights(b, right, {depth, 5}, axis)));
  };
  constexpr dtype t = dtype::f8e4m3fn;
  expect_products([&](builder& b) { product(b, t, t, 16, 1); });
  expect_unchanged([&](builder& b) { product(b, t, dtype::f8e5m2, 16, 1); });  // two types
  expect_unchanged([&](builder& b) { product(b, t, t, 24, 1); });              // rows of no whole pieces
  expect_unchanged([&](builder& b) { product(b, t, t, 16, 0); });              // a scale for each depth
  expect_unchanged([&](builder& b) { product(b, dtype::f8e4m3fnuz, dtype::f8e4m3fnuz, 16, 1); });
  expect_unchanged([&](builder& b) {  // of the left operand, too
    const value q =
        b.input("q", t, {3, 16}).convert(dtype::f32) * b.input("scale", dtype::f32, {16}).broadcast_to({3, 16});
    b.output(q.dot(weights(b, t, {16, 5}, 1)));
  });
  const auto in_blocks = [](builder& b, dtype type, std::int64_t depth, std::int64_t columns) {
    const std::int64_t blocks = depth == 0 ? 0 : 1;
    const value scales =
        b.constant<float>(type, {blocks, columns}, std::vector<float>(static_cast<std::size_t>(blocks * columns), .5f));
    const value w =
        b.add(op::block_dequantize{.bits = 8, .axis = 0, .block = 16}, numbers(b, t, {depth, columns}), scales);
    b.output(b.input("x", t, {3, depth}).convert(type).dot(w));
  };
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16})
    EXPECT_EQ(products_in(rewritten([&](builder& b) { in_blocks(b, type, 16, 5); }), true), 1u) << to_string(type);
  expect_unchanged([&](builder& b) { in_blocks(b, dtype::f64, 16, 5); });  // sums of more bits than f32 has
  expect_unchanged([&](builder& b) { in_blocks(b, dtype::f32, 0, 5); });   // no depth, so no scales
  expect_unchanged([&](builder& b) { in_blocks(b, dtype::f32, 16, 0); });  // no columns
  expect_unchanged([&](builder& b) {                                       // floats that are no numbers of eight bits
    b.output(b.input("x", dtype::f32, {3, 16}).dot(weights(b, t, {16, 5}, 1)));
  });
}

}  // namespace
}  // namespace kiln::test

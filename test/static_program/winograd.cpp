#include "static_program/equal.hpp"

// Convolutions that run by Winograd, whose weights are transformed when they are bound.
namespace kiln::test {
namespace {

constexpr auto pooled = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 16, 8, 8});
  const auto bias = b.weight("bias", dtype::f32, {32});
  x = x.conv(b.weight("u", dtype::f32, {32, 16, 3, 3}), {.pads = {1, 1, 1, 1}}).add_along(1, bias).relu();
  x = x.pool({.lengths = {2, 2}, .stride = {2, 2}});
  x = x.conv(b.weight("v", dtype::f32, {64, 32, 3, 3}), {.pads = {1, 1, 1, 1}}).abs();
  b.output(x.pool({.lengths = {2, 2}, .stride = {2, 2}}).flatten());
};
TEST(static_winograd, pooling_joins_the_convolution_before_it) {
  expect_equal<pooled>(1);
  EXPECT_EQ((static_program<pooled>::kernels), 2u);
}

constexpr auto shapes_and_readers = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 16, 7, 10});
  const auto w = b.weight("w", dtype::f32, {16, 16, 3, 3});
  const auto scale = b.weight("scale", dtype::f32, {16});
  const auto all = x.conv(w, {.pads = {2, 0, 0, 1}}).add_along(1, scale) * 2.0;  // odd, uneven padding
  b.output(all.pool({.lengths = {2, 2}, .stride = {2, 2}})
               .concat(all.slice({.axes = {2, 3}, .starts = {0, 0}, .ends = {3, 4}}), 1));
  const auto half = x.slice({.axes = {2}, .starts = {1}, .ends = {7}});  // neither image nor result is dense
  b.output(half.conv(w, {.pads = {1, 1, 1, 1}}).concat(half, 2));
  const auto y = x.slice({.axes = {2}, .starts = {0}, .ends = {6}}).conv(w, {.pads = {1, 1, 1, 1}});
  b.output(y.pool({.lengths = {2, 2}, .stride = {2, 2}}));  // y has two readers
  b.output(y + x.slice({.axes = {2}, .starts = {0}, .ends = {6}}));
  b.output(x.conv(b.weight("r", dtype::f32, {16, 16, 3, 3}), {.pads = {1, 1, 1, 1}}) * x);  // by products
};
TEST(static_winograd, odd_sizes_padding_views_and_several_readers) { expect_equal<shapes_and_readers>(2); }

constexpr auto large = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 16, 15, 19});
  b.output(x.conv(b.weight("w", dtype::f32, {96, 16, 3, 3}), {.pads = {1, 1, 1, 1}}).relu());
};
TEST(static_winograd, blocks_of_tiles_and_groups_of_filters) { expect_equal<large>(3); }

// Tiles would begin before what is read, or give no floats: such convolutions are products.
constexpr auto elsewhere = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 16, 5, 12});
  const auto w = b.weight("w", dtype::f32, {16, 16, 3, 3}), v = b.weight("v", dtype::f32, {16});
  b.output(x.conv(w, {.pads = {1, -1, 1, 1}}));
  b.output(x.conv(w, {.pads = {1, 1, 1, -2}}));
  b.output(x.conv(w, {.pads = {7, 5, 7, 5}}));
  const auto y = x.conv(w, {.pads = {1, 1, 1, 1}});
  b.output(y > y.make_along(1, v));
};
TEST(static_winograd, pads_and_results_that_it_leaves_to_products) { expect_equal<elsewhere>(4); }

constexpr auto small = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 16, 4, 4});
  b.output(x.conv(b.weight("w", dtype::f32, {16, 16, 3, 3}), {.pads = {1, 1, 1, 1}}));
};
TEST(static_winograd, binding_again_takes_new_values) {
  using program_type = static_program<small>;
  std::vector<float> x(256, 1.0f), one(16 * 16 * 9, 1.0f), two(16 * 16 * 9, 2.0f);
  const std::span<const float, 256> in(x.data(), 256);
  const auto p = std::make_unique<program_type>();
  p->bind<0>(program_type::weight_span<0>(one.data(), one.size()));
  EXPECT_EQ((*p)(in)[5], 9 * 16);
  p->bind<0>(program_type::weight_span<0>(two.data(), two.size()));
  EXPECT_EQ((*p)(in)[5], 2 * 9 * 16);
  const auto copy = std::make_unique<program_type>(*p);
  p->bind<0>(program_type::weight_span<0>(one.data(), one.size()));
  EXPECT_EQ((*copy)(in)[5], 2 * 9 * 16);
}

}  // namespace
}  // namespace kiln::test

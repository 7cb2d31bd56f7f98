#include "static_program/equal.hpp"

// Results that steps of every kind write where the views that alone read them have them.
namespace kiln::test {
namespace {

constexpr auto transposed = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {3, 4, 20});
  const auto turned = [](auto v) { return v.transpose({1, 0, 2}).reshape({4, v.dim(0) * v.dim(2)}); };
  const auto across = b.input("across", dtype::f32, {60, 6});
  b.output(turned(x.dot(b.input("w", dtype::f32, {20, 40}))).dot(b.input("wide", dtype::f32, {120, 6})));
  b.output(turned(x.softmax()).dot(across));
  b.output(turned(x.exp()).dot(across));
  b.output(turned(b.add(op::cumsum{.axis = 1}, x)).dot(across));
  b.output(turned(x.sin().concat(x.cos(), 2)).dot(b.input("wide_too", dtype::f32, {120, 6})));
  const auto image = b.input("image", dtype::f32, {2, 3, 8, 10});
  const auto rows_first = [](auto v) { return v.transpose({0, 2, 1, 3}).reshape({v.dim(2) * 2, v.dim(1) * v.dim(3)}); };
  const auto pooled = image.pool({.lengths = {2, 2}, .stride = {2, 2}});
  b.output(rows_first(pooled).dot(b.input("columns", dtype::f32, {15, 6})));
  const auto filtered = b.input("wide_image", dtype::f32, {2, 16, 8, 10})
                            .conv(b.weight("filters", dtype::f32, {16, 16, 3, 3}), {.pads = {1, 1, 1, 1}});
  b.output(rows_first(filtered).dot(b.input("many", dtype::f32, {160, 6})));
};
TEST(static_placement, results_are_written_transposed) {
  expect_equal<transposed>(1, 2e-5);
  // seven products, and what makes their operands: exp, sin and cos are one kernel
  static_assert(static_program<transposed>::kernels == 7 + 6, "no step copies");
}

// A channel shuffle of two branches, as in ShuffleNet: each writes one of the runs of channels.
constexpr auto shuffled = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {2, 3, 4, 5}), y = b.input("y", dtype::f32, {2, 3, 4, 5});
  const auto all = x.tanh().concat(y.softmax(), 1);
  const auto mixed = all.reshape({2, 2, 3, 4, 5}).transpose({0, 2, 1, 3, 4}).reshape({2, 6, 4, 5});
  b.output(mixed.conv(b.weight("w", dtype::f32, {8, 6, 1, 1})));
};
TEST(static_placement, a_channel_shuffle_of_branches_copies_nothing) {
  expect_equal<shuffled>(2, 2e-5);
  static_assert(static_program<shuffled>::kernels == 3);
}

}  // namespace
}  // namespace kiln::test

#include "static_program/equal.hpp"

// Weights that a static program prepares, where another operand, the place of the result or its extents forbid it.
namespace kiln::test {
namespace {

// The rows of a part of a concatenation are not evenly spaced.
constexpr auto rows_in_a_concatenation = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 13, 72});
  const auto w = b.weight("w", dtype::f32, {72, 150});
  auto y = x.dot(w).relu();
  b.output(y.concat(b.input("z", dtype::f32, {2, 5, 150}), 1));
};
TEST(static_prepared, rows_in_a_concatenation) { expect_static<rows_in_a_concatenation>(1, 2e-5); }

constexpr auto square = [](auto& b) {
  const auto w = b.weight("w", dtype::f32, {40, 40});
  b.output((w.dot(w) * 0.5).relu());
};
TEST(static_prepared, both_operands_are_one) { expect_static<square>(1, 2e-5); }

constexpr auto weight_read_twice = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {48, 48, 5, 5});
  const auto w = b.weight("w", dtype::f32, {48, 48, 3, 3});
  b.output((x.conv(w) * 0.1 + w).relu());
};
TEST(static_prepared, an_epilogue_reads_the_weight) { expect_static<weight_read_twice>(1, 2e-5); }

constexpr auto repeated_channel = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {1, 1, 40, 40});
  const auto y = x.broadcast_to({1, 64, 40, 40});
  const auto w = b.weight("w", dtype::f32, {64, 1, 7, 7});
  b.output(y.conv(w, {.pads = {3, 3, 3, 3}, .group = 64}).relu());
};
TEST(static_prepared, depthwise_over_one_repeated_channel) { expect_static<repeated_channel>(1, 2e-5); }

constexpr auto odd_channels = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {1, 3, 40, 40});
  const auto w = b.weight("w", dtype::f32, {33, 3, 7, 7});
  b.output(x.conv(w, {.pads = {3, 3, 3, 3}}).relu().pool({.lengths = {3, 3}, .stride = {2, 2}}));
};
TEST(static_prepared, channels_pool_beyond_whole_vectors) { expect_static<odd_channels>(1, 2e-5); }

constexpr auto no_rows = [](auto& b) {
  b.output(b.input("x", dtype::f32, {2, 0, 72}).dot(b.weight("w", dtype::f32, {72, 150})).relu());
  b.output(b.input("z", dtype::f32, {0, 32}).dot(b.weight("v", dtype::f32, {32, 64})));
};
TEST(static_prepared, empty_results) { expect_static<no_rows>(1, 2e-5); }

}  // namespace
}  // namespace kiln::test

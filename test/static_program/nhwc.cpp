#include "static_program/equal.hpp"

// Networks large enough for NHWC, and products that read weights in panels.
namespace kiln::test {
namespace {

constexpr auto residual = [](auto& b) {
  const auto layer = [&](auto x, std::string_view weight, std::string_view bias, dims w, const op::convolution& how) {
    const auto weights = b.weight(weight, dtype::f32, w);
    const auto c = b.weight(bias, dtype::f32, {w[0]});
    return (x.conv(weights, how) * 0.0625).add_along(1, c);
  };
  auto x = b.input("x", dtype::f32, {1, 3, 48, 46});
  x = layer(x, "stem", "stem_bias", {64, 3, 7, 7}, {.stride = {2, 2}, .pads = {3, 3, 3, 3}}).relu();
  // by tiles of 4x4 results, whose last column is narrower, added to an image
  auto y = (layer(x, "four", "four_bias", {64, 64, 3, 3}, {.pads = {1, 1, 1, 1}}) + x).relu();
  y = y.pool({.lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}});
  b.output(y);  // in NCHW again
  // by tiles of 2x2
  const auto z = layer(y, "two", "two_bias", {64, 64, 3, 3}, {.pads = {1, 1, 1, 1}}).relu();
  const auto narrow = layer(z, "narrow", "narrow_bias", {24, 64, 1, 1}, {.stride = {2, 2}});
  const auto apart =
      layer(z, "apart", "apart_bias", {64, 1, 3, 3}, {.stride = {2, 2}, .pads = {1, 1, 1, 1}, .group = 64});
  const auto wide =
      layer(z, "wide", "wide_bias", {40, 64, 3, 2}, {.stride = {2, 2}, .dilation = {2, 3}, .pads = {2, 2, 2, 2}});
  auto all = narrow.concat(apart, 1).concat(wide.slice({.axes = {3}, .starts = {0}, .ends = {6}}), 1).sigmoid();
  b.output(all.pool({.mode = op::pooling_mode::average, .lengths = {3, 2}, .stride = {2, 1}, .pads = {1, 0, 1, 1}}));
  b.output(all.reduce_mean({2, 3}).flatten().dot(b.weight("head", dtype::f32, {128, 21})));
};
TEST(static_nhwc, residuals_strides_dilation_depthwise_and_concatenation) {
  expect_static<residual>(1, 2e-5);
  constexpr std::size_t four = 36 * 64 * 64 * 4, two = 16 * 64 * 64 * 4;  // transformed weights
  EXPECT_GE((static_program<residual>::prepared_bytes), four + two);
}

// Weights of deep windows meet all pixels a part at a time; two images, an operand in NCHW, and groups.
constexpr auto deep = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 256, 5, 4});
  const auto scale = b.weight("scale", dtype::f32, {40, 1, 1});
  const auto y = x.conv(b.weight("w", dtype::f32, {40, 256, 3, 3}), {.pads = {1, 1, 1, 1}}) * scale;
  b.output(y.relu());
  b.output(x.conv(b.weight("v", dtype::f32, {256, 1, 3, 3}), {.pads = {0, 1, 1, 0}, .group = 256}).abs());
  b.output(y.conv(b.weight("g", dtype::f32, {20, 20, 1, 1}), {.group = 2}) + 1.0);
  const auto parts = b.input("parts", dtype::f32, {2, 40, 5, 4});
  b.output(x.conv(b.weight("p", dtype::f32, {40, 256, 1, 1})) * parts + y);
};
TEST(static_nhwc, deep_windows_batches_and_operands_in_nchw) {
  expect_static<deep>(2, 2e-5);
  EXPECT_GE((static_program<deep>::prepared_bytes), 48u * 256 * 9 * 4);
}

constexpr auto rows = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 13, 72});
  const auto w = b.weight("w", dtype::f32, {72, 150}), bias = b.weight("bias", dtype::f32, {150});
  auto y = (x.dot(w) + bias).relu();
  b.output(y.dot(b.weight("v", dtype::f32, {150, 37})) + y.slice({.axes = {2}, .starts = {0}, .ends = {37}}));
  b.output(b.input("one", dtype::f32, {1, 400}).dot(b.weight("large", dtype::f32, {400, 200})).tanh());
  b.output(x.transpose({0, 2, 1}).dot(b.weight("t", dtype::f32, {13, 100})));  // its columns are contiguous
};
// One weight of three convolutions, two of which read it in one form, and an image in NCHW that four steps read;
// normalization across channels, pooling, and interleaved rows that are reduced.
constexpr auto shared = [](auto& b) {
  const op::convolution same{.pads = {1, 1, 1, 1}};
  auto x = b.input("x", dtype::f32, {1, 32, 24, 25});
  const auto w = b.weight("w", dtype::f32, {32, 32, 3, 3});
  const auto y = x.conv(w, same) * 0.05, z = y.conv(w, same) * 0.05;
  auto u = x.conv(b.weight("u", dtype::f32, {49, 32, 1, 1}), {.stride = {1, 1}}).relu();
  u = b.add(op::lrn{.size = 4, .alpha = 0.3f}, u).pool({.lengths = {3, 3}, .stride = {2, 2}});
  const auto v = z.conv(w, {.stride = {2, 2}}) * 0.05;
  b.output(v.concat(u, 1).reduce_mean({2, 3}));
  b.output(((u - 0.5).abs().reduce_max({2, 3}).reshape({1, 49}) * b.weight("scale", dtype::f32, {49})).tanh());
  b.output(b.add(op::lrn{.size = 3, .alpha = 0.5f, .beta = 0.6f, .bias = 2}, y + z).reduce_sum({1}));
};
TEST(static_nhwc, weights_and_images_that_several_steps_read) {
  expect_static<shared>(4, 2e-5);
  using program = static_program<shared>;
  constexpr std::size_t once = 32 * 32 * 4, tiles = program::prepared_bytes - (64 + 9 * 32) * 32 * 4;
  EXPECT_TRUE(tiles == 16 * once || tiles == 36 * once) << tiles;
}

TEST(static_nhwc, rows_meet_matrices_in_panels) { expect_static<rows>(3, 2e-5); }

}  // namespace
}  // namespace kiln::test

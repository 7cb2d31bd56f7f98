#include "static_program/equal.hpp"

// What of static programs depends on the instruction set, at each level that this machine has.
namespace kiln::test {
namespace {

constexpr auto small = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 16, 8, 8});
  const auto bias = b.weight("bias", dtype::f32, {32});
  x = x.conv(b.weight("filters", dtype::f32, {32, 16, 3, 3}), {.pads = {1, 1, 1, 1}}).add_along(1, bias).relu();
  x = x.pool({.lengths = {2, 2}, .stride = {2, 2}});
  x = x.conv(b.weight("strided", dtype::f32, {20, 32, 3, 3}), {.stride = {2, 2}, .pads = {1, 1, 1, 1}}).sigmoid();
  x = x.flatten().dot(b.weight("head", dtype::f32, {80, 19}));
  b.output((x + b.weight("head_bias", dtype::f32, {19})).softmax());
};
TEST(static_levels, images_in_planes_and_rows) { expect_static<small>(1, 1e-5); }

constexpr auto tokens = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 2, 21, 24});
  const auto heads = x.dot(b.weight("w", dtype::f32, {24, 50})).gelu();
  const auto q = heads.slice({.axes = {3}, .starts = {0}, .ends = {20}}),
             k = heads.slice({.axes = {3}, .starts = {20}, .ends = {40}});
  b.output((q.dot(k.transpose({0, 1, 3, 2})) * 0.25).softmax().dot(x).normalize({-1}));
};
TEST(static_levels, attention_norms_and_panels) { expect_static<tokens>(2, 2e-5); }

constexpr auto large = [](auto& b) {
  const auto pads = ints{1, 1, 1, 1};
  auto x = b.input("x", dtype::f32, {1, 3, 26, 25});
  x = x.conv(b.weight("stem", dtype::f32, {48, 3, 3, 3}), {.pads = pads}).relu();
  x = x.conv(b.weight("tiles", dtype::f32, {48, 48, 3, 3}), {.pads = pads}) + x;
  x = x.pool({.lengths = {3, 3}, .stride = {2, 2}, .pads = pads});
  x = x.conv(b.weight("apart", dtype::f32, {48, 1, 3, 3}), {.pads = pads, .group = 48}).relu();
  x = x.conv(b.weight("pointwise", dtype::f32, {37, 48, 1, 1}), {.stride = {2, 2}}) * 0.001;
  b.output(x.reduce_mean({2, 3}));
  b.output(x);
};
TEST(static_levels, images_with_their_nhwc) { expect_static<large>(3, 2e-5); }

}  // namespace
}  // namespace kiln::test

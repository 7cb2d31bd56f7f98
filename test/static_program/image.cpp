#include "static_program/equal.hpp"

namespace kiln::test {
namespace {

constexpr auto network = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 3, 11, 13});
  const auto vector = [&](std::string_view name) { return b.weight(name, dtype::f32, {8}); };
  x = x.conv(b.weight("w", dtype::f32, {8, 3, 3, 3}), {.pads = {1, 1, 1, 1}});
  const auto deviation = vector("deviation");
  x = x.batch_norm(vector("scale"), vector("bias"), vector("mean"), deviation * deviation).relu();
  x = x.pool({.lengths = {2, 2}, .stride = {2, 2}});
  b.output(x.flatten().dot(b.weight("head", dtype::f32, {240, 10})).softmax());
};
TEST(static_image, convolution_norm_pooling_and_head) { expect_equal<network>(1); }

constexpr auto windows = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 4, 9, 10});
  b.output(x.conv(b.weight("a", dtype::f32, {6, 4, 3, 2}), {.stride = {2, 3}, .pads = {1, 0, 2, 1}}));
  b.output(x.conv(b.weight("b", dtype::f32, {5, 4, 3, 3}), {.dilation = {2, 2}, .pads = {2, 2, 2, 2}}).sigmoid());
  b.output(x.conv(b.weight("c", dtype::f32, {6, 2, 3, 3}), {.pads = {1, 1, 1, 1}, .group = 2}));
  b.output(x.conv(b.weight("d", dtype::f32, {4, 1, 3, 3}), {.pads = {1, 1, 1, 1}, .group = 4}) + x);
  b.output(x.conv(b.weight("e", dtype::f32, {7, 4, 1, 1})).relu());
};
TEST(static_image, strides_dilation_groups_depthwise_and_one_by_one) { expect_equal<windows>(2); }

constexpr auto other_ranks = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 3, 30}), y = b.input("y", dtype::f32, {1, 2, 4, 5, 6});
  b.output(x.conv(b.weight("a", dtype::f32, {4, 3, 5}), {.pads = {2, 2}}));
  b.output(y.conv(b.weight("b", dtype::f32, {3, 2, 2, 3, 3}), {.pads = {0, 1, 1, 1, 1, 1}}));
};
TEST(static_image, convolutions_of_one_and_three_dims) { expect_equal<other_ranks>(3); }

constexpr auto pools = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 3, 7, 8});
  b.output(x.pool({.lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}}));
  b.output(x.pool({.mode = op::pooling_mode::average, .lengths = {3, 2}, .stride = {2, 2}, .pads = {1, 0, 1, 1}}));
  b.output(x.pool({.mode = op::pooling_mode::average,
                   .lengths = {3, 3},
                   .stride = {2, 2},
                   .pads = {1, 1, 1, 1},
                   .ceil_mode = true,
                   .count_include_pad = true}));
  b.output(x.pool({.mode = op::pooling_mode::lp, .lengths = {2, 2}, .dilation = {2, 3}}));
  b.output(x.transpose({0, 1, 3, 2}).pool({.lengths = {2, 2}}));
};
TEST(static_image, pooling) { expect_equal<pools>(4); }

constexpr auto inception = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 4, 6, 6});
  auto y = x.conv(b.weight("a", dtype::f32, {3, 4, 1, 1})).relu(),
       z = x.conv(b.weight("b", dtype::f32, {5, 4, 3, 3}), {.pads = {1, 1, 1, 1}}).relu(),
       p = x.pool({.lengths = {3, 3}, .pads = {1, 1, 1, 1}});
  auto all = y.concat(z, 1).concat(p, 1).concat(x, 1);
  b.output(all.conv(b.weight("c", dtype::f32, {2, 16, 3, 3})) * 3.0);
  b.output(all);
  b.output(y.concat(y, 2).reduce_mean({2, 3}));
};
TEST(static_image, concatenations_are_written_in_place) { expect_equal<inception>(5); }

constexpr auto residual = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 8, 5, 5});
  auto y = x.conv(b.weight("a", dtype::f32, {8, 8, 3, 3}), {.pads = {1, 1, 1, 1}})
               .add_along(1, b.weight("p", dtype::f32, {8}));
  y = y.relu().conv(b.weight("b", dtype::f32, {8, 8, 3, 3}), {.pads = {1, 1, 1, 1}});
  b.output((y + x).relu());
};
TEST(static_image, residual_block_of_two_images) { expect_equal<residual>(6); }

}  // namespace
}  // namespace kiln::test

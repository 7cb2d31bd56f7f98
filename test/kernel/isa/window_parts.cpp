#include "kiln/kernel/conv/window_parts.hpp"

#include "kernel/isa/convolution_check.hpp"

namespace {

using namespace kiln::testing;

template <class T> class window_parts_test : public testing::Test {};
TYPED_TEST_SUITE(window_parts_test, convolved);

// Taps that read inside for some outputs alone: images that are small beside the dilation, strides, uneven pads,
// windows wholly outside, one axis; with and without a matrix unit, depths that no block divides.
TYPED_TEST(window_parts_test, equal_the_definition) {
  const auto in_parts = [](const conv_problem& p) {
    EXPECT_TRUE(window_cut(p).gains());
    check_problem<TypeParam>(p, [&](const auto& with, bool, bool) { with(conv_method::nhwc_gemm); });
  };
  in_parts(plane(1, 200, 130, 1, 20, 19, 3, 1, 15, 15));
  in_parts(plane(2, 150, 170, 1, 9, 13, 3, 1, 8, 8));
  in_parts(plane(3, 230, 97, 1, 21, 25, 3, 2, 18, 18));
  in_parts(plane(1, 163, 210, 1, 12, 11, 4, 1, 9, 7));
  conv_problem uneven = plane(1, 170, 190, 1, 14, 17, 3, 1, 0, 9);
  uneven.pad_begin = {0, 14, 3}, uneven.pad_end = {0, 10, 16};
  in_parts(uneven);
  conv_problem outside = plane(2, 200, 130, 1, 19, 18, 3, 1, 1);
  outside.pad_begin = {0, 19, 1}, outside.pad_end = {0, 1, 22};
  in_parts(outside);
  conv_problem line = plane(4, 220, 120, 1, 1, 60, 3, 1, 0, 50);
  line.kernel[1] = 1, line.pad_begin[2] = line.pad_end[2] = 50;
  in_parts(line);
}

TEST(window_parts, windows_are_cut_where_that_takes_less_work) {
  const auto share = [](std::int64_t in, std::int64_t out, std::int64_t extent, std::int64_t dilation) {
    return window_cut(plane(1, in, out, 1, extent, extent, 3, 1, dilation, dilation)).share();
  };
  EXPECT_LT(share(2048, 256, 33, 24), 0.4);
  EXPECT_LT(share(2048, 256, 33, 12), 0.7);
  EXPECT_EQ(share(512, 512, 33, 4), 1);
  EXPECT_EQ(share(8, 16, 33, 24), 1);  // jobs would take longer than the products
  EXPECT_EQ(share(512, 512, 7, 1), 1);
}

// Strided windows are gathered element by element, again for each chunk of channels: a unit saves less than that takes.
TEST(convolution, gathered_elements_gain_nothing_from_a_matrix_unit) {
  const auto gain = [](const conv_problem& p) {
    const auto cost = [&](bool unit) { return conv_cost<float>(p, false, false, {1, unit}).of(conv_method::im2col); };
    return cost(false) / cost(true);
  };
  EXPECT_EQ(gain(plane(1, 3, 768, 1, 224, 224, 16, 16, 0)), 1);
  EXPECT_EQ(gain(plane(1, 64, 512, 1, 57, 57, 3, 2, 1)), 1);
  EXPECT_GT(gain(plane(1, 256, 512, 1, 56, 56, 1, 1, 0)), 1.2);
  EXPECT_GT(gain(plane(1, 256, 256, 1, 112, 112, 3, 1, 1)), 1.2);
  EXPECT_NE(choose_conv_method<float>(plane(1, 3, 768, 1, 223, 224, 16, 16, 7), false, false, {1, true}),
            conv_method::im2col);
}

}  // namespace

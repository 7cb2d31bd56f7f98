#include <gmock/gmock.h>

#include "kernel/isa/convolution_check.hpp"

namespace {

using namespace kiln::testing;

template <class T> void check_rows(const conv_problem& p) {
  ASSERT_TRUE(winograd_1d_convolution<T>::serves(p));
  check_problem<T>(p, [](const auto& with, bool in_nhwc, bool) {
    if (!in_nhwc) with(conv_method::winograd_1d);
  });
}

template <class T> class winograd_1d : public testing::Test {};
TYPED_TEST_SUITE(winograd_1d, convolved);

TYPED_TEST(winograd_1d, kernels_strides_pads) {
  std::int64_t out = 1, width = 11;
  for (std::int64_t kernel = 2; kernel <= 11; ++kernel)
    for (std::int64_t stride = 1; stride <= 4; ++stride)
      for (std::int64_t pad : {0, 1, 3}) {
        const conv_problem p = plane(1 + kernel % 2, 1 + pad, out, 1, 13, width, kernel, stride, pad);
        if (!winograd_1d_convolution<TypeParam>::serves(p)) continue;
        check_rows<TypeParam>(p);
        out = out % 70 + 9, width = width % 31 + 11;
      }
}

TYPED_TEST(winograd_1d, widths_of_parts_of_tiles) {
  for (std::int64_t width = 1; width <= 41; width += 3)
    for (std::int64_t height : {1, 2, 9}) check_rows<TypeParam>(plane(2, 2, 19, 1, height, width, 5, 2, 2));
}

TYPED_TEST(winograd_1d, panels_of_channels_and_groups) {
  for (std::int64_t out : {16, 31, 48, 64, 65, 96, 130}) check_rows<TypeParam>(plane(1, 3, out, 1, 12, 50, 7, 2, 3));
  check_rows<TypeParam>(plane(2, 4, 36, 2, 12, 21, 5, 1, 2));
  check_rows<TypeParam>(plane(1, 6, 6, 6, 12, 21, 3, 1, 1));
}

TYPED_TEST(winograd_1d, strips_of_tall_images) {
  check_rows<TypeParam>(plane(1, 3, 8, 1, 150, 41, 7, 2, 3));
  check_rows<TypeParam>(plane(1, 8, 8, 1, 90, 70, 5, 1, 2));  // cut by what the transformed rows take
}

TYPED_TEST(winograd_1d, rectangles_and_paddings_beyond_the_kernel) {
  conv_problem p = plane(2, 3, 19, 1, 14, 23, 5);
  p.kernel = {1, 2, 5};
  p.stride = {1, 3, 2};
  p.dilation = {1, 4, 1};
  p.pad_begin = {0, 3, 0}, p.pad_end = {0, 0, 4};
  check_rows<TypeParam>(p);
  p.stride = {1, 1, 3};
  p.pad_begin = {0, 9, 1}, p.pad_end = {0, 0, 17};
  check_rows<TypeParam>(p);
  p.pad_begin = {0, 0, 18}, p.pad_end = {0, 8, 0};
  check_rows<TypeParam>(p);
  conv_problem before = plane(1, 3, 19, 1, 14, 1, 4, 3);  // outputs that read nothing but padding
  before.pad_begin = {0, 0, 5};
  check_rows<TypeParam>(before);
  p.in_channels = 0;  // zeros, then the epilogue
  check_rows<TypeParam>(p);
}

TEST(winograd_1d, what_it_serves) {
  const auto serves = [](const conv_problem& p) { return winograd_1d_convolution<float>::serves(p); };
  EXPECT_TRUE(serves(plane(1, 3, 8, 1, 20, 20, 5, 1)));
  EXPECT_FALSE(serves(plane(1, 3, 8, 1, 20, 20, 6, 1)));  // 6 taps
  EXPECT_TRUE(serves(plane(1, 3, 8, 1, 20, 20, 10, 2)));
  EXPECT_FALSE(serves(plane(1, 3, 8, 1, 20, 20, 11, 2)));
  EXPECT_FALSE(serves(plane(1, 3, 8, 1, 20, 20, 2, 2)));  // one tap of each phase
  EXPECT_FALSE(serves(plane(1, 3, 8, 1, 20, 20, 3, 1, 0, 2)));
  EXPECT_FALSE(serves(plane(1, 512, 8, 1, 20, 224, 5, 1)));  // transformed rows beyond the cache
  EXPECT_TRUE(serves(plane(1, 64, 64, 1, 20, 20, 3, 1)));
  EXPECT_FALSE(serves(plane(1, 128, 128, 1, 20, 20, 3, 1)));  // weights beyond the cache
}

// A tile transforms columns together, yet none that no output reads.
TYPED_TEST(winograd_1d, columns_after_the_last_output_do_not_count) {
  const conv_problem p = plane(1, 2, 20, 1, 9, 16, 4, 3);  // five outputs read 16 columns
  for (const std::int64_t width : {17, 18}) {
    conv_problem wider = p;
    wider.input[2] = width;
    ASSERT_EQ(wider.output(2), p.output(2));
    auto in = random_values<TypeParam>(2 * wider.input_pixels(), 1);
    for (std::size_t i = 0; i < in.size(); ++i)
      if (static_cast<std::int64_t>(i) % width >= 16) in[i] = std::numeric_limits<TypeParam>::quiet_NaN();
    std::vector<TypeParam> read;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (static_cast<std::int64_t>(i) % width < 16) read.push_back(in[i]);
    const auto w = random_values<TypeParam>(p.out_channels * p.depth(), 2);
    kiln::thread_pool pool(1);
    for (const bool last : {false, true})
      check_method(pool, wider, conv_method::winograd_1d, false, last, in, w, naive(p, read, w));
  }
}

// Errors beside the greatest output; up to 5 taps have points of 1/2 and -1/2.
TEST(winograd_1d, precision) {
  for (const std::int64_t kernel : {3, 4, 5, 7, 10}) {
    const conv_problem p = plane(1, 3, 32, 1, 40, 40, kernel, kernel > 5 ? 2 : 1, 2);
    const auto in = random_values<float>(p.in_channels * p.input_pixels(), 1);
    const auto w = random_values<float>(p.out_channels * p.depth(), 2);
    const auto expected = naive(p, in, w);
    kiln::thread_pool pool(1);
    const auto conv = plan_convolution<float>(p, 1, conv_method::winograd_1d);
    const std::vector<float> packed = packed_weights(pool, p, conv_method::winograd_1d, w);
    std::vector<float> out(expected.size()), scratch(static_cast<std::size_t>(conv->scratch_size()));
    conv->run(pool, in.data(), packed.data(), out.data(), scratch.data());
    double error = 0, greatest = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      error = std::max(error, std::abs(static_cast<double>(out[i]) - expected[i]));
      greatest = std::max(greatest, std::abs(expected[i]));
    }
    EXPECT_LT(error, 3e-6 * greatest) << kernel;
  }
}

}  // namespace

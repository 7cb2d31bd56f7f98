#include <gmock/gmock.h>

#include "kernel/isa/convolution_check.hpp"

namespace {

using namespace kiln::testing;

template <class T> class convolution_test : public testing::Test {};
TYPED_TEST_SUITE(convolution_test, convolved);

TYPED_TEST(convolution_test, kernels_strides_pads_dilations) {
  for (std::int64_t kernel : {1, 2, 3, 5})
    for (std::int64_t stride : {1, 2, 3})
      for (std::int64_t pad : {0, 1, 2})
        for (std::int64_t dilation : {1, 2})
          check_all_methods<TypeParam>(plane(1, 3, 20, 1, 13, 17, kernel, stride, pad, dilation));
}

TYPED_TEST(convolution_test, channel_counts) {
  for (std::int64_t out : {1, 5, 8, 16, 17, 31, 47, 64, 65, 130})
    for (std::int64_t in : {1, 4}) check_all_methods<TypeParam>(plane(1, in, out, 1, 9, 10, 3, 1, 1));
}

TYPED_TEST(convolution_test, images_wider_than_a_panel) {
  check_all_methods<TypeParam>(plane(2, 2, 18, 1, 30, 75, 3, 1, 1));
  check_all_methods<TypeParam>(plane(1, 3, 9, 1, 60, 131, 5, 2, 2));
  check_all_methods<TypeParam>(plane(1, 1, 3, 1, 70, 300, 3, 1, 1));
  check_all_methods<TypeParam>(plane(3, 20, 70, 1, 31, 33, 1));
}

// Rows by columns and parts of the channels; a window wider than these columns.
TYPED_TEST(convolution_test, long_rows) {
  for (conv_problem p : {plane(2, 3, 70, 1, 1, 401, 7, 5, 5, 4), plane(2, 6, 60, 3, 1, 130, 2, 1, 5, 90),
                         plane(1, 1, 131, 1, 1, 1100, 3, 1, 5)}) {
    p.kernel[1] = 1, p.pad_begin[1] = p.pad_end[1] = 0;
    check_all_methods<TypeParam>(p);
  }
}

// Products that a matrix unit takes where there is one.
TYPED_TEST(convolution_test, large_products) {
  check_all_methods<TypeParam>(plane(1, 130, 150, 1, 19, 17, 1));
  check_all_methods<TypeParam>(plane(2, 140, 260, 2, 12, 12, 1));
  check_all_methods<TypeParam>(plane(2, 70, 260, 1, 23, 22, 3, 2, 1));
  check_all_methods<TypeParam>(plane(1, 130, 200, 1, 33, 31, 1, 2));
  check_all_methods<TypeParam>(plane(2, 20, 200, 1, 30, 13, 5, 1, 2, 2));
}

TYPED_TEST(convolution_test, groups) {
  for (std::int64_t groups : {2, 4}) {
    check_all_methods<TypeParam>(plane(2, 8, 12, groups, 7, 9, 3, 1, 1));
    check_all_methods<TypeParam>(plane(2, 8, 140, groups, 7, 7, 1));
  }
  check_all_methods<TypeParam>(
      plane(1, 240, 240, 2, 14, 9, 3, 1, 1));  // 1 MiB of weights: strip after strip of a group
}

// Outputs of a group that take one vector of some level, whole or in part; rows narrower than a tile, as wide as two
// rows of one, and wider; channels that four do not divide; windows in place and copied.
TYPED_TEST(convolution_test, groups_of_one_vector) {
  for (const std::int64_t outputs : {3, 4, 8, 16})
    for (const std::int64_t width : {1, 5, 7, 13, 29})
      check_all_methods<TypeParam>(plane(2, 16, 2 * outputs, 2, 5, width, 3, 1, 1));
  check_all_methods<TypeParam>(plane(1, 27, 33, 3, 15, 17, 3, 2, 1));
  check_all_methods<TypeParam>(plane(1, 16, 10, 1, 8, 31, 5, 1, 2));
  check_all_methods<TypeParam>(plane(1, 30, 24, 3, 15, 16, 3, 1, 2, 2));
  check_all_methods<TypeParam>(plane(2, 32, 32, 2, 9, 9, 3, 1));
  check_all_methods<TypeParam>(plane(1, 32, 32, 2, 15, 15, 1, 2));
}

// Planes of shuffled channels and of a part of a concatenation: runs of channels of which a product takes what it
// shares with a group.
TYPED_TEST(convolution_test, planes_that_lie_apart) {
  const auto check_apart = [](const conv_problem& p, conv_method method) {
    const auto in = random_values<TypeParam>(p.batch * p.in_channels * p.input_pixels(), 1);
    const auto w = random_values<TypeParam>(p.out_channels * p.depth(), 2);
    const auto expected = naive(p, in, w);
    for (const std::int64_t each : {1, 2, 3, 4, 6, 12}) {
      SCOPED_TRACE(each);
      const std::ptrdiff_t plane = p.output_pixels() + 5, runs = p.out_channels / each;
      const nchw_strides apart{each, p.out_channels * plane + 7, plane, runs * plane};
      for (unsigned threads : {1U, 3U}) {
        kiln::thread_pool pool(threads);
        check_method(pool, p, method, false, false, in, w, expected, apart);
      }
    }
  };
  for (const std::int64_t groups : {1, 2, 4}) {
    check_apart(plane(2, 8, 12, groups, 9, 8, 1), conv_method::im2col);
    check_apart(plane(2, 8, 24, groups, 7, 11, 3, 2, 1), conv_method::im2col);
  }
  for (const std::int64_t stride : {1, 2, 3})
    for (const std::int64_t multiplier : {1, 2})
      for (const std::int64_t extent : {5, 14, 70})
        check_apart(plane(2, 12, 12 * multiplier, 12, extent, extent + 3, 3, stride, 1), conv_method::depthwise_nchw);
  check_apart(plane(2, 12, 12, 12, 15, 14, 5, 1, 2), conv_method::depthwise_nchw);
}

TYPED_TEST(convolution_test, deep_sums_are_cut) {
  check_all_methods<TypeParam>(plane(1, 400, 70, 1, 7, 7, 3, 1, 1));
  check_all_methods<TypeParam>(plane(1, 1700, 20, 1, 5, 5, 1));
}

TYPED_TEST(convolution_test, asymmetric_pads_and_rectangles) {
  conv_problem p{.batch = 2, .in_channels = 3, .out_channels = 19};
  p.input = {1, 8, 21};
  p.kernel = {1, 2, 5};
  p.stride = {1, 2, 1};
  p.dilation = {1, 3, 2};
  p.pad_begin = {0, 3, 0};
  p.pad_end = {0, 0, 4};
  check_all_methods<TypeParam>(p);
  p.pad_begin = {0, 0, 9};  // more padding than the kernel reaches
  p.pad_end = {0, 7, 1};
  check_all_methods<TypeParam>(p);
}

TYPED_TEST(convolution_test, one_and_three_dimensions) {
  conv_problem line{.batch = 2, .in_channels = 4, .out_channels = 18, .groups = 2};
  line.input = {1, 1, 50};
  line.kernel = {1, 1, 7};
  line.stride = {1, 1, 2};
  line.pad_begin = line.pad_end = {0, 0, 3};
  check_all_methods<TypeParam>(line);
  conv_problem volume{.batch = 2, .in_channels = 3, .out_channels = 17};
  volume.input = {6, 7, 8};
  volume.kernel = {3, 2, 3};
  volume.stride = {2, 1, 2};
  volume.dilation = {2, 1, 1};
  volume.pad_begin = {2, 0, 1};
  volume.pad_end = {1, 1, 1};
  check_all_methods<TypeParam>(volume);
  volume.pad_begin = volume.pad_end = {};
  check_all_methods<TypeParam>(volume);
  volume.groups = volume.in_channels = volume.out_channels = 4;
  check_all_methods<TypeParam>(volume);
}

TYPED_TEST(convolution_test, empty) {
  check_all_methods<TypeParam>(plane(0, 3, 4, 1, 5, 5, 3));
  check_all_methods<TypeParam>(plane(0, 3, 8, 1, 20, 20, 5));
  check_all_methods<TypeParam>(plane(0, 64, 32, 2, 9, 8, 1));
  for (const std::int64_t kernel : {3, 5})
    for (const std::int64_t stride : {1, 2})
      check_all_methods<TypeParam>(plane(0, 20, 34, 1, 12, 13, kernel, stride, kernel / 2));
  check_all_methods<TypeParam>(plane(1, 3, 4, 1, 2, 2, 3));         // the kernel does not fit
  check_all_methods<TypeParam>(plane(1, 0, 20, 1, 5, 5, 3, 1, 1));  // no input channels: zeros, then the epilogue
  check_all_methods<TypeParam>(plane(2, 9, 7, 1, 0, 4, 3, 1, 2));   // nothing but padding
  check_all_methods<TypeParam>(plane(2, 9, 7, 1, 4, 0, 5, 1, 3));
}

TYPED_TEST(convolution_test, padding_beyond_a_tile) {
  conv_problem p = plane(2, 20, 34, 2, 9, 11, 3);
  p.pad_begin = {0, 8, 0}, p.pad_end = {0, 0, 13};
  check_all_methods<TypeParam>(p);
  p.kernel = {1, 5, 5};
  p.pad_begin = {0, 0, 13}, p.pad_end = {0, 9, 1};
  check_all_methods<TypeParam>(p);
  p.stride = {1, 2, 2};
  check_all_methods<TypeParam>(p);
  p.kernel = {1, 3, 3};
  check_all_methods<TypeParam>(p);
  p.pad_begin = {0, 0, 0}, p.pad_end = {0, 1, 1};
  check_all_methods<TypeParam>(p);
}

TYPED_TEST(convolution_test, tiles_in_blocks_that_workers_share_or_keep) {
  check_all_methods<TypeParam>(plane(1, 20, 70, 1, 23, 30, 3, 1, 1));
  check_all_methods<TypeParam>(plane(3, 17, 130, 1, 6, 5, 3, 1, 1));
  check_all_methods<TypeParam>(plane(2, 16, 16, 1, 33, 33, 3, 1, 0));
  check_all_methods<TypeParam>(plane(1, 20, 70, 1, 23, 30, 5, 1, 2));
  check_all_methods<TypeParam>(plane(3, 17, 130, 1, 6, 5, 5, 1, 3));
  check_all_methods<TypeParam>(plane(1, 20, 70, 1, 46, 59, 3, 2, 1));
  check_all_methods<TypeParam>(plane(3, 17, 130, 1, 12, 10, 5, 2, 2));
}

TYPED_TEST(convolution_test, filtered_images_of_few_tiles) {
  std::int64_t in = 1, out = 70;
  for (std::int64_t extent = 1; extent <= 9; ++extent)
    for (const std::int64_t kernel : {3, 5})
      for (const std::int64_t pad : {0, 1, 2}) {
        for (const std::int64_t stride : {1, 2}) {
          conv_problem p =
              plane(1 + extent % 3, in, out, 1, stride * extent, stride * (10 - extent), kernel, stride, pad);
          p.near_weights = pad != 1;
          check_all_methods<TypeParam>(p);
        }
        in = in % 70 + 11, out = out % 70 + 13;
      }
}

TYPED_TEST(convolution_test, filtered_groups) {
  check_all_methods<TypeParam>(plane(2, 36, 140, 2, 13, 12, 3, 1, 1));
  check_all_methods<TypeParam>(plane(1, 60, 57, 3, 11, 13, 5, 1, 2));
  check_all_methods<TypeParam>(plane(2, 36, 140, 2, 25, 24, 3, 2, 1));
  check_all_methods<TypeParam>(plane(1, 60, 57, 3, 21, 27, 5, 2, 2));
}

TEST(convolution, workers_share_weights_that_each_block_would_read_again) {
  // the first and third are shared where vectors are of 64 bytes, the second and fourth have too few tiles, and those
  // of the last two are several blocks
  kiln::thread_pool pool(4);
  for (const conv_problem& p : {plane(1, 36, 448, 1, 14, 14, 3, 1, 1), plane(1, 36, 140, 1, 7, 7, 3, 1, 1),
                                plane(1, 36, 448, 1, 28, 28, 3, 2, 1), plane(1, 36, 140, 1, 14, 14, 5, 2, 2),
                                plane(3, 20, 260, 1, 10, 10, 3, 1, 1), plane(3, 20, 260, 1, 19, 20, 5, 2, 2)}) {
    const auto in = random_values<float>(p.batch * p.in_channels * p.input_pixels(), 1);
    const auto w = random_values<float>(p.out_channels * p.depth(), 2);
    const auto expected = naive(p, in, w);
    for (bool last : {true, false}) check_method(pool, p, conv_method::winograd_2x2, last, last, in, w, expected);
  }
}

TEST(convolution, methods_by_size) {
  const auto chosen = [](std::int64_t in, std::int64_t out, std::int64_t groups, std::int64_t extent,
                         std::int64_t kernel, bool last) {
    return choose_conv_method<float>(plane(1, in, out, groups, extent, extent, kernel, 1, kernel / 2), last, last);
  };
  EXPECT_EQ(chosen(64, 64, 1, 56, 3, false), conv_method::winograd_4x4);
  EXPECT_EQ(chosen(64, 64, 1, 56, 3, true), conv_method::winograd_4x4);
  EXPECT_EQ(chosen(48, 192, 1, 20, 3, true), conv_method::winograd_4x4);
  // tiles of 4x4 would take 38 MB of weights; tiles of 2x2 pay for their 17 MB where vectors of 16 bytes multiply
  EXPECT_THAT(chosen(512, 512, 1, 7, 3, true), testing::AnyOf(conv_method::winograd_2x2, conv_method::nhwc_gemm));
  EXPECT_EQ(chosen(512, 512, 1, 3, 3, true), conv_method::nhwc_gemm);  // few pixels would read many weights
  // a few hundred KiB of weights cost little
  if (kiln::native_bytes == 64) {
    EXPECT_EQ(chosen(128, 32, 1, 7, 3, true), conv_method::winograd_2x2);
    EXPECT_EQ(chosen(128, 64, 1, 7, 3, true), conv_method::winograd_2x2);  // 512 KiB
    EXPECT_EQ(chosen(128, 80, 1, 7, 3, true), conv_method::nhwc_gemm);     // 640 KiB
  }
  EXPECT_EQ(chosen(128, 256, 1, 7, 3, true), conv_method::nhwc_gemm);
  EXPECT_EQ(chosen(384, 384, 2, 13, 3, true), conv_method::winograd_2x2);
  EXPECT_EQ(chosen(512, 512, 32, 14, 3, true), conv_method::nhwc_gemm);  // transforms would cost more than they save
  EXPECT_EQ(chosen(64, 64, 1, 56, 5, true), conv_method::winograd_2x2);
  EXPECT_EQ(chosen(16, 16, 1, 7, 5, true), conv_method::nhwc_gemm);
  EXPECT_EQ(chosen(4, 16, 1, 5, 3, false), conv_method::direct_channels);  // rows end with a part of a vector
  EXPECT_EQ(chosen(3, 8, 1, 112, 3, false), conv_method::direct_rows);
  EXPECT_EQ(chosen(64, 256, 1, 56, 1, false), conv_method::im2col);
  EXPECT_EQ(chosen(64, 256, 1, 56, 1, true), conv_method::nhwc_gemm);
  EXPECT_EQ(chosen(32, 32, 32, 56, 3, false), conv_method::depthwise_nchw);
  EXPECT_EQ(chosen(32, 32, 32, 56, 3, true), conv_method::depthwise_nhwc);
  // rows of less than a vector are worth a change of layout, except for 3x3 kernels, which have loops for them
  EXPECT_EQ(chosen(960, 960, 960, 7, 3, false), conv_method::depthwise_nchw);
  EXPECT_EQ(chosen(960, 960, 960, 28, 5, false), conv_method::depthwise_nchw);
  if (kiln::native_bytes == 64) {
    EXPECT_EQ(chosen(960, 960, 960, 7, 5, false), conv_method::depthwise_nhwc);
  }
  // an image of one pixel lies the same way in both layouts: nothing is converted
  EXPECT_EQ(chosen(1152, 48, 1, 1, 1, false), conv_method::nhwc_gemm);
}

TEST(convolution, cheap_bytes_favor_winograd) {
  const auto chosen = [](std::int64_t channels, std::int64_t extent, double byte_cost) {
    return choose_conv_method<float>(plane(1, channels, channels, 1, extent, extent, 3, 1, 1), true, true, {byte_cost});
  };
  EXPECT_EQ(chosen(512, 7, 0.4), conv_method::winograd_2x2);
  EXPECT_EQ(chosen(256, 14, 0.4), conv_method::winograd_4x4);
  EXPECT_EQ(chosen(512, 3, 0.4), conv_method::nhwc_gemm);
  if (kiln::native_bytes == 64) {
    EXPECT_EQ(chosen(512, 7, 1), conv_method::nhwc_gemm);
    EXPECT_EQ(chosen(256, 14, 1), conv_method::winograd_2x2);
  }
}

TEST(convolution, strided_winograd_by_size) {
  const auto chosen = [](std::int64_t in, std::int64_t out, std::int64_t extent, std::int64_t kernel,
                         std::int64_t stride, const conv_machine& machine) {
    return choose_conv_method<float>(plane(1, in, out, 1, extent, extent, kernel, stride, kernel / 2), true, true,
                                     machine);
  };
  for (const double byte_cost : {0.4, 1.0}) {
    EXPECT_EQ(chosen(128, 128, 56, 3, 2, {byte_cost}), conv_method::winograd_2x2);
    EXPECT_EQ(chosen(96, 256, 55, 5, 2, {byte_cost}), conv_method::winograd_2x2);
    EXPECT_EQ(chosen(256, 256, 56, 3, 2, {byte_cost}), conv_method::winograd_2x2);
    EXPECT_EQ(chosen(256, 256, 56, 3, 2, {byte_cost, true}), conv_method::nhwc_gemm);
    EXPECT_EQ(chosen(128, 16, 56, 5, 2, {byte_cost, true}), conv_method::winograd_2x2);  // too few outputs for the unit
    EXPECT_EQ(chosen(64, 64, 56, 5, 2, {byte_cost, true}),
              conv_method::winograd_2x2);                                // splitting takes too long there
    const conv_problem groups = plane(1, 256, 256, 2, 56, 56, 3, 2, 1);  // it multiplies no groups
    EXPECT_EQ(choose_conv_method<float>(groups, true, true, {byte_cost, true}), conv_method::winograd_2x2);
    EXPECT_EQ(chosen(64, 64, 56, 3, 1, {byte_cost, true}), conv_method::winograd_4x4);
    EXPECT_EQ(chosen(512, 512, 7, 3, 2, {byte_cost}), conv_method::nhwc_gemm);  // few pixels would read many weights
    EXPECT_EQ(chosen(64, 64, 56, 3, 3, {byte_cost}), conv_method::nhwc_gemm);
  }
}

static_assert(winograd_1d_convolution<float>::serves(plane(1, 3, 8, 1, 20, 20, 5)));  // at compile time, too

TEST(convolution, winograd_along_rows_by_size) {
  const auto row_of = [](std::int64_t in, std::int64_t out, std::int64_t width, std::int64_t kernel) {
    conv_problem p = plane(1, in, out, 1, 1, width, kernel, 1, kernel / 2);
    p.kernel[1] = 1, p.pad_begin[1] = p.pad_end[1] = 0;
    return p;
  };
  const auto chosen = [](std::int64_t in, std::int64_t out, std::int64_t extent, std::int64_t kernel,
                         std::int64_t stride, bool in_nhwc, bool out_nhwc) {
    return choose_conv_method<float>(plane(1, in, out, 1, extent, extent, kernel, stride, kernel / 2), in_nhwc,
                                     out_nhwc);
  };
  for (const bool last : {false, true}) {
    EXPECT_EQ(chosen(3, 64, 224, 7, 2, false, last), conv_method::winograd_1d);
    EXPECT_EQ(chosen(3, 96, 224, 11, 4, false, last), conv_method::winograd_1d);
    EXPECT_EQ(chosen(8, 32, 56, 5, 1, false, last), conv_method::winograd_1d);
    EXPECT_NE(chosen(3, 32, 112, 3, 2, false, last), conv_method::winograd_1d);   // 9 products for 12
    EXPECT_NE(chosen(64, 128, 28, 3, 2, false, last), conv_method::winograd_1d);  // transforms would cost more
    EXPECT_NE(chosen(3, 64, 224, 11, 2, false, last), conv_method::winograd_1d);  // phases of 6 taps
    EXPECT_NE(choose_conv_method<float>(row_of(64, 64, 400, 3), false, last), conv_method::winograd_1d);  // one task
    EXPECT_NE(chosen(512, 512, 7, 3, 1, false, last), conv_method::winograd_1d);  // few rows, many weights
    EXPECT_NE(chosen(128, 128, 28, 5, 2, false, last), conv_method::winograd_1d);
    EXPECT_NE(chosen(3, 64, 224, 7, 2, true, last), conv_method::winograd_1d);
  }
}

TEST(convolution, near_weights_never_cost_more) {
  for (const double byte_cost : {0.4, 1.0})
    for (const std::int64_t channels : {16, 24, 64, 128, 512})
      for (const std::int64_t extent : {1, 3, 6, 7, 14, 28})
        for (const conv_method method :
             {conv_method::winograd_2x2, conv_method::winograd_4x4, conv_method::nhwc_gemm}) {
          conv_problem p = plane(1, channels, channels, 1, extent, extent, 3, 1, 1);
          const double far = conv_cost<float>(p, true, true, {byte_cost}).of(method);
          p.near_weights = true;
          EXPECT_LE(conv_cost<float>(p, true, true, {byte_cost}).of(method), far) << channels << " at " << extent;
        }
}

TEST(convolution, near_weights_favor_winograd) {
  const auto chosen = [](std::int64_t in, std::int64_t out, std::int64_t extent, std::int64_t kernel, bool near) {
    conv_problem p = plane(1, in, out, 1, extent, extent, kernel, 1, kernel / 2);
    p.near_weights = near;
    return choose_conv_method<float>(p, true, true);
  };
  EXPECT_EQ(chosen(32, 64, 4, 3, false), conv_method::nhwc_gemm);
  EXPECT_EQ(chosen(32, 64, 4, 3, true), conv_method::winograd_2x2);
  // few weights are filtered anyway, unless 32 channels are two panels, which workers share unevenly
  EXPECT_EQ(chosen(16, 32, 8, 3, false), kiln::native_bytes == 32 ? conv_method::nhwc_gemm : conv_method::winograd_2x2);
  EXPECT_EQ(chosen(16, 32, 8, 3, true), conv_method::winograd_4x4);
  EXPECT_EQ(chosen(16, 32, 8, 5, true), conv_method::winograd_2x2);
  EXPECT_EQ(chosen(32, 32, 2, 3, true), conv_method::nhwc_gemm);  // one tile: reading takes longer than products
}

}  // namespace

#include "kiln/kernel/convolution.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <limits>
#include <optional>
#include <vector>

#include "eigen/isa/random_values.hpp"
#include "kiln/kernel/affine_tail.hpp"

namespace {

using namespace kiln::kernels;
using kiln::testing::random_values;

template <class T>
std::vector<double> naive(const conv_problem& p, const std::vector<T>& in, const std::vector<T>& w) {
  std::vector<double> out;
  const std::int64_t icg = p.group_inputs();
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t oc = 0; oc < p.out_channels; ++oc)
      for (std::int64_t z = 0; z < p.output(0); ++z)
        for (std::int64_t y = 0; y < p.output(1); ++y)
          for (std::int64_t x = 0; x < p.output(2); ++x) {
            double sum = 0;
            for (std::int64_t ic = 0; ic < icg; ++ic)
              for (std::int64_t t = 0; t < p.taps(); ++t) {
                const std::int64_t iz =
                    z * p.stride[0] - p.pad_begin[0] + t / p.kernel[2] / p.kernel[1] * p.dilation[0];
                const std::int64_t iy =
                    y * p.stride[1] - p.pad_begin[1] + t / p.kernel[2] % p.kernel[1] * p.dilation[1];
                const std::int64_t ix = x * p.stride[2] - p.pad_begin[2] + t % p.kernel[2] * p.dilation[2];
                if (iz < 0 || iz >= p.input[0] || iy < 0 || iy >= p.input[1] || ix < 0 || ix >= p.input[2]) continue;
                const std::int64_t channel = n * p.in_channels + oc / p.group_outputs() * icg + ic;
                const std::int64_t at = ((channel * p.input[0] + iz) * p.input[1] + iy) * p.input[2] + ix;
                sum += static_cast<double>(in[static_cast<std::size_t>(at)]) *
                       static_cast<double>(w[static_cast<std::size_t>((oc * icg + ic) * p.taps() + t)]);
              }
            out.push_back(sum);
          }
  return out;
}

// How a test lays an image out: by planes, perhaps apart, or with channels last and a gap behind them.
struct test_layout {
  bool last;
  std::int64_t channels, pixels;
  std::optional<plane_steps> apart = {};

  std::int64_t gap() const { return last ? 3 : 0; }
  image_layout layout() const { return {last, last ? channels + gap() : 0, apart}; }
  std::size_t size(std::int64_t batch) const {
    return static_cast<std::size_t>(batch * (apart ? apart->image : (channels + gap()) * pixels));
  }
  std::size_t at(std::int64_t image, std::int64_t channel, std::int64_t pixel) const {
    if (apart) return static_cast<std::size_t>(apart->at(image, channel) + pixel);
    return static_cast<std::size_t>(last ? (image * pixels + pixel) * (channels + gap()) + channel
                                         : (image * channels + channel) * pixels + pixel);
  }
};

template <class T>
void check_method(kiln::thread_pool& pool, const conv_problem& p, conv_method method, bool in_last, bool out_last,
                  const std::vector<T>& planes, const std::vector<T>& w, const std::vector<double>& expected,
                  const std::optional<plane_steps>& apart = {}) {
  SCOPED_TRACE(testing::Message() << "method " << static_cast<int>(method) << " threads " << pool.size()
                                  << " channels last: in " << in_last << " out " << out_last);
  const test_layout from{in_last, p.in_channels, p.input_pixels()},
      to{out_last, p.out_channels, p.output_pixels(), apart};
  std::vector<T> in(from.size(p.batch), std::numeric_limits<T>::quiet_NaN());
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t c = 0; c < from.channels; ++c)
      for (std::int64_t i = 0; i < from.pixels; ++i)
        in[from.at(n, c, i)] = planes[test_layout{false, from.channels, from.pixels}.at(n, c, i)];
  const convolution<T> conv(p, pool.size(), method, from.layout(), to.layout());
  const auto weights_size = static_cast<std::size_t>(conv_weights_size<T>(p, method));
  std::vector<T> weights(weights_size, std::numeric_limits<T>::quiet_NaN());
  pack_conv_weights(pool, p, method, weights.data(), w.data());
  // Unwritten scratch must not reach a result, nor may anything be written behind it.
  const auto scratch_size = static_cast<std::size_t>(conv.scratch_size());
  std::vector<T> scratch(scratch_size + 32, std::numeric_limits<T>::quiet_NaN());
  for (std::size_t i = scratch_size; i < scratch.size(); ++i) scratch[i] = T(5);
  std::vector<T> out(to.size(p.batch) + 32, T(-77));
  std::vector<std::atomic<int>> visits(expected.size());
  const std::int64_t pixels = p.output_pixels(), channels = p.out_channels;
  const auto added = [&](std::int64_t image, std::int64_t channel, std::int64_t pixel) {
    ++visits.at(test_layout{false, channels, pixels}.at(image, channel, pixel));
    return T(channel) - T(0.25) * T(pixel) + T(image);
  };
  conv.run(pool, in.data(), weights.data(), out.data(), scratch.data(),
           [&](std::int64_t image, std::int64_t channel0, std::int64_t channel_count, std::int64_t pixel0,
               std::int64_t pixel_count, T* c, std::ptrdiff_t c_row) {
             for (std::int64_t r = 0; r < channel_count; ++r)
               for (std::int64_t j = 0; j < pixel_count; ++j) {
                 const std::int64_t pixel = pixel0 + j;
                 if (out_last)
                   c[j * c_row + r] += added(pixel / pixels, channel0 + r, pixel % pixels);
                 else
                   c[r * c_row + j] += added(image, channel0 + r, pixel);
               }
           });
  double tolerance = (std::is_same_v<T, float> ? 1e-6 : 1e-14) * static_cast<double>(p.depth() + channels + pixels + 1);
  // points of 2 and -2
  if (method == conv_method::winograd4 || method == conv_method::filtered_rows ||
      (method == conv_method::winograd2 && p.kernel[1] == 5))
    tolerance *= 4;
  std::size_t i = 0;
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t x = 0; x < pixels; ++x, ++i) {
        T& found = out[to.at(n, c, x)];
        const double epilogue = static_cast<double>(c) - 0.25 * static_cast<double>(x) + static_cast<double>(n);
        ASSERT_NEAR(static_cast<double>(found), expected[i] + epilogue, tolerance) << n << ' ' << c << ' ' << x;
        ASSERT_EQ(visits[i].load(), 1) << n << ' ' << c << ' ' << x;
        found = T(-77);
      }
  for (const T& x : out) ASSERT_EQ(x, T(-77)) << "written between or behind the outputs";

  if (pool.size() == 1) return;
  // A tail that the kernels apply to their sums: a bias for each channel, another image, an upper bound.
  const test_layout added_at{out_last, channels, pixels};
  const auto bias = random_values<T>(channels, 3);
  const auto addend = random_values<T>(static_cast<std::int64_t>(added_at.size(p.batch)), 4);
  affine_tail<T> tail{.offset = T(.125), .addend = addend.data(), .clamps = true, .high = T(.75)};
  tail.addend_row = out_last ? added_at.layout().step : pixels;
  if (out_last)
    tail.col_bias[1] = bias.data();
  else
    tail.row_bias = bias.data(), tail.row_period = channels;
  conv.run(pool, in.data(), weights.data(), out.data(), scratch.data(), affine_images<T>{tail, channels, out_last});
  i = 0;
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t x = 0; x < pixels; ++x, ++i) {
        const std::size_t at = to.at(n, c, x);
        const T more = bias[static_cast<std::size_t>(c)] + addend[added_at.at(n, c, x)];
        const double sum = expected[i] + .125 + static_cast<double>(more);
        ASSERT_NEAR(static_cast<double>(out[at]), std::min(sum, .75), tolerance) << n << ' ' << c << ' ' << x;
        out[at] = T(-77);
      }
  for (const T& x : out) ASSERT_EQ(x, T(-77)) << "written between or behind the outputs, by a tail";
  for (std::size_t k = scratch_size; k < scratch.size(); ++k)
    ASSERT_EQ(scratch[k], T(5)) << "written behind the scratch";
}

template <class T>
void check(const conv_problem& p) {
  SCOPED_TRACE(testing::Message() << "batch " << p.batch << " channels " << p.in_channels << " > " << p.out_channels
                                  << " groups " << p.groups << " input " << p.input[0] << ' ' << p.input[1] << ' '
                                  << p.input[2] << " kernel " << p.kernel[0] << ' ' << p.kernel[1] << ' ' << p.kernel[2]
                                  << " stride " << p.stride[1] << ' ' << p.stride[2]);
  const auto in = random_values<T>(p.batch * p.in_channels * p.input_pixels(), 1);
  const auto w = random_values<T>(p.out_channels * p.depth(), 2);
  const auto expected = naive(p, in, w);
  for (unsigned threads : {1U, 3U}) {
    kiln::thread_pool pool(threads);
    for (const bool in_last : {false, true})
      for (const bool out_last : {false, true}) {
        const auto with = [&](conv_method method) {
          check_method(pool, p, method, in_last, out_last, in, w, expected);
        };
        with(conv_method::channels);
        // the others convert by the same code
        if (in_last == out_last) with(conv_method::pixels);
        if (in_last == out_last && p.group_inputs() == 1 && p.kernel[0] == 1 && p.input[0] == 1 && p.output(0) == 1)
          with(conv_method::planes);
        if (in_last == out_last && row_convolution<T>::serves(p)) with(conv_method::rows);
        if (!in_last && filtered_row_convolution<T>::serves(p)) with(conv_method::filtered_rows);
        if (image_convolution<T>::serves(p)) with(conv_method::images);
        if (winograd_convolution<T, 2>::serves(p) || winograd_convolution<T, 2, 5>::serves(p))
          with(conv_method::winograd2);
        if (winograd_convolution<T, 4>::serves(p)) with(conv_method::winograd4);
        if (in_last && depthwise_convolution<T>::serves(p)) with(conv_method::depthwise);
      }
  }
}

conv_problem plane(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t groups, std::int64_t height,
                   std::int64_t width, std::int64_t kernel, std::int64_t stride = 1, std::int64_t pad = 0,
                   std::int64_t dilation = 1) {
  conv_problem p{.batch = batch, .in_channels = in, .out_channels = out, .groups = groups};
  p.input = {1, height, width};
  p.kernel = {1, kernel, kernel};
  p.stride = {1, stride, stride};
  p.dilation = {1, dilation, dilation};
  p.pad_begin = p.pad_end = {0, pad, pad};
  return p;
}

template <class T>
class convolution_test : public testing::Test {};
using scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(convolution_test, scalars);

TYPED_TEST(convolution_test, kernels_strides_pads_dilations) {
  for (std::int64_t kernel : {1, 2, 3, 5})
    for (std::int64_t stride : {1, 2, 3})
      for (std::int64_t pad : {0, 1, 2})
        for (std::int64_t dilation : {1, 2})
          check<TypeParam>(plane(1, 3, 20, 1, 13, 17, kernel, stride, pad, dilation));
}

TYPED_TEST(convolution_test, channel_counts) {
  for (std::int64_t out : {1, 5, 8, 16, 17, 31, 47, 64, 65, 130})
    for (std::int64_t in : {1, 4}) check<TypeParam>(plane(1, in, out, 1, 9, 10, 3, 1, 1));
}

TYPED_TEST(convolution_test, images_wider_than_a_panel) {
  check<TypeParam>(plane(2, 2, 18, 1, 30, 75, 3, 1, 1));
  check<TypeParam>(plane(1, 3, 9, 1, 60, 131, 5, 2, 2));
  check<TypeParam>(plane(1, 1, 3, 1, 70, 300, 3, 1, 1));
  check<TypeParam>(plane(3, 20, 70, 1, 31, 33, 1));
}

TYPED_TEST(convolution_test, groups) {
  for (std::int64_t groups : {2, 4}) {
    check<TypeParam>(plane(2, 8, 12, groups, 7, 9, 3, 1, 1));
    check<TypeParam>(plane(2, 8, 140, groups, 7, 7, 1));
  }
}

TYPED_TEST(convolution_test, depthwise) {
  for (std::int64_t multiplier : {1, 2})
    for (std::int64_t stride : {1, 2, 3})
      for (std::int64_t width : {1, 5, 16, 33, 64, 100, 129})
        check<TypeParam>(plane(2, 6, 6 * multiplier, 6, 11, width, 3, stride, 1));
  check<TypeParam>(plane(1, 40, 40, 40, 14, 14, 5, 1, 4, 2));
  check<TypeParam>(plane(1, 2, 2, 2, 200, 90, 3, 1, 1));  // several strips
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
      const plane_steps apart{each, p.out_channels * plane + 7, plane, runs * plane};
      for (unsigned threads : {1U, 3U}) {
        kiln::thread_pool pool(threads);
        check_method(pool, p, method, false, false, in, w, expected, apart);
      }
    }
  };
  for (const std::int64_t groups : {1, 2, 4}) {
    check_apart(plane(2, 8, 12, groups, 9, 8, 1), conv_method::pixels);
    check_apart(plane(2, 8, 24, groups, 7, 11, 3, 2, 1), conv_method::pixels);
  }
  for (const std::int64_t stride : {1, 2, 3})
    for (const std::int64_t multiplier : {1, 2})
      for (const std::int64_t extent : {5, 14, 70})
        check_apart(plane(2, 12, 12 * multiplier, 12, extent, extent + 3, 3, stride, 1), conv_method::planes);
  check_apart(plane(2, 12, 12, 12, 15, 14, 5, 1, 2), conv_method::planes);
}

TYPED_TEST(convolution_test, deep_sums_are_cut) {
  check<TypeParam>(plane(1, 400, 70, 1, 7, 7, 3, 1, 1));
  check<TypeParam>(plane(1, 1700, 20, 1, 5, 5, 1));
}

TYPED_TEST(convolution_test, asymmetric_pads_and_rectangles) {
  conv_problem p{.batch = 2, .in_channels = 3, .out_channels = 19};
  p.input = {1, 8, 21};
  p.kernel = {1, 2, 5};
  p.stride = {1, 2, 1};
  p.dilation = {1, 3, 2};
  p.pad_begin = {0, 3, 0};
  p.pad_end = {0, 0, 4};
  check<TypeParam>(p);
  p.pad_begin = {0, 0, 9};  // more padding than the kernel reaches
  p.pad_end = {0, 7, 1};
  check<TypeParam>(p);
}

TYPED_TEST(convolution_test, one_and_three_dimensions) {
  conv_problem line{.batch = 2, .in_channels = 4, .out_channels = 18, .groups = 2};
  line.input = {1, 1, 50};
  line.kernel = {1, 1, 7};
  line.stride = {1, 1, 2};
  line.pad_begin = line.pad_end = {0, 0, 3};
  check<TypeParam>(line);
  conv_problem volume{.batch = 2, .in_channels = 3, .out_channels = 17};
  volume.input = {6, 7, 8};
  volume.kernel = {3, 2, 3};
  volume.stride = {2, 1, 2};
  volume.dilation = {2, 1, 1};
  volume.pad_begin = {2, 0, 1};
  volume.pad_end = {1, 1, 1};
  check<TypeParam>(volume);
  volume.pad_begin = volume.pad_end = {};
  check<TypeParam>(volume);
  volume.groups = volume.in_channels = volume.out_channels = 4;
  check<TypeParam>(volume);
}

TYPED_TEST(convolution_test, empty) {
  check<TypeParam>(plane(0, 3, 4, 1, 5, 5, 3));
  check<TypeParam>(plane(1, 3, 4, 1, 2, 2, 3));         // the kernel does not fit
  check<TypeParam>(plane(1, 0, 20, 1, 5, 5, 3, 1, 1));  // no input channels: zeros, then the epilogue
  check<TypeParam>(plane(2, 9, 7, 1, 0, 4, 3, 1, 2));   // nothing but padding
  check<TypeParam>(plane(2, 9, 7, 1, 4, 0, 5, 1, 3));
}

TYPED_TEST(convolution_test, padding_beyond_a_tile) {
  conv_problem p = plane(2, 20, 34, 2, 9, 11, 3);
  p.pad_begin = {0, 8, 0}, p.pad_end = {0, 0, 13};
  check<TypeParam>(p);
  p.kernel = {1, 5, 5};
  p.pad_begin = {0, 0, 13}, p.pad_end = {0, 9, 1};
  check<TypeParam>(p);
}

TYPED_TEST(convolution_test, tiles_in_blocks_that_workers_share_or_keep) {
  check<TypeParam>(plane(1, 20, 70, 1, 23, 30, 3, 1, 1));
  check<TypeParam>(plane(3, 17, 130, 1, 6, 5, 3, 1, 1));
  check<TypeParam>(plane(2, 16, 16, 1, 33, 33, 3, 1, 0));
  check<TypeParam>(plane(1, 20, 70, 1, 23, 30, 5, 1, 2));
  check<TypeParam>(plane(3, 17, 130, 1, 6, 5, 5, 1, 3));
}

TYPED_TEST(convolution_test, filtered_images_of_few_tiles) {
  std::int64_t in = 1, out = 70;
  for (std::int64_t extent = 1; extent <= 9; ++extent)
    for (const std::int64_t kernel : {3, 5})
      for (const std::int64_t pad : {0, 1, 2}) {
        conv_problem p = plane(1 + extent % 3, in, out, 1, extent, 10 - extent, kernel, 1, pad);
        p.near_weights = pad != 1;
        check<TypeParam>(p);
        in = in % 70 + 11, out = out % 70 + 13;
      }
}

TYPED_TEST(convolution_test, filtered_groups) {
  check<TypeParam>(plane(2, 36, 140, 2, 13, 12, 3, 1, 1));
  check<TypeParam>(plane(1, 60, 57, 3, 11, 13, 5, 1, 2));
}

TEST(convolution, workers_share_weights_that_each_block_would_read_again) {
  const conv_problem p = plane(1, 448, 256, 1, 14, 14, 3, 1, 1);
  const auto in = random_values<float>(p.batch * p.in_channels * p.input_pixels(), 1);
  const auto w = random_values<float>(p.out_channels * p.depth(), 2);
  kiln::thread_pool pool(2);
  for (bool last : {true, false}) check_method(pool, p, conv_method::winograd2, last, last, in, w, naive(p, in, w));
}

TEST(convolution, methods_by_size) {
  const auto chosen = [](std::int64_t in, std::int64_t out, std::int64_t groups, std::int64_t extent,
                         std::int64_t kernel, bool last) {
    return choose_conv_method<float>(plane(1, in, out, groups, extent, extent, kernel, 1, kernel / 2), last, last);
  };
  EXPECT_EQ(chosen(64, 64, 1, 56, 3, false), conv_method::winograd4);
  EXPECT_EQ(chosen(64, 64, 1, 56, 3, true), conv_method::winograd4);
  EXPECT_EQ(chosen(48, 192, 1, 20, 3, true), conv_method::winograd4);
  // tiles of 4x4 would take 38 MB of weights; tiles of 2x2 pay for their 17 MB where vectors of 16 bytes multiply
  EXPECT_THAT(chosen(512, 512, 1, 7, 3, true), testing::AnyOf(conv_method::winograd2, conv_method::images));
  EXPECT_EQ(chosen(512, 512, 1, 3, 3, true), conv_method::images);  // few pixels would read many weights
  EXPECT_EQ(chosen(384, 384, 2, 13, 3, true), conv_method::winograd2);
  EXPECT_EQ(chosen(512, 512, 32, 14, 3, true), conv_method::images);  // transforms would cost more than they save
  EXPECT_EQ(chosen(64, 64, 1, 56, 5, true), conv_method::winograd2);
  EXPECT_EQ(chosen(16, 16, 1, 7, 5, true), conv_method::images);
  EXPECT_EQ(chosen(4, 16, 1, 5, 3, false), conv_method::channels);  // rows end with a part of a vector
  EXPECT_EQ(chosen(3, 64, 1, 112, 3, false), conv_method::rows);
  EXPECT_EQ(chosen(64, 256, 1, 56, 1, false), conv_method::pixels);
  EXPECT_EQ(chosen(64, 256, 1, 56, 1, true), conv_method::images);
  EXPECT_EQ(chosen(32, 32, 32, 56, 3, false), conv_method::planes);
  EXPECT_EQ(chosen(32, 32, 32, 56, 3, true), conv_method::depthwise);
}

TEST(convolution, near_weights_favour_minimal_filtering) {
  const auto chosen = [](std::int64_t in, std::int64_t out, std::int64_t extent, std::int64_t kernel, bool near) {
    conv_problem p = plane(1, in, out, 1, extent, extent, kernel, 1, kernel / 2);
    p.near_weights = near;
    return choose_conv_method<float>(p, true, true);
  };
  EXPECT_EQ(chosen(32, 64, 4, 3, false), conv_method::images);
  EXPECT_EQ(chosen(32, 64, 4, 3, true), conv_method::winograd2);
  EXPECT_EQ(chosen(16, 32, 8, 3, false), conv_method::images);
  EXPECT_EQ(chosen(16, 32, 8, 3, true), conv_method::winograd4);
  EXPECT_EQ(chosen(16, 32, 8, 5, true), conv_method::winograd2);
  EXPECT_EQ(chosen(32, 32, 2, 3, true), conv_method::images);  // one tile: reading takes longer than products
}

}  // namespace

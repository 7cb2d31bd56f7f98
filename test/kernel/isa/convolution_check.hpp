#pragma once

#include "kiln/kernel/conv/convolution.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <optional>
#include <vector>

#include "kernel/isa/random_values.hpp"
#include "kiln/kernel/gemm/affine_epilogue.hpp"

namespace kiln::testing {

using namespace kiln::kernels;

/// A convolution by its definition, in double.
template <class T> std::vector<double> naive(const conv_problem& p, const std::vector<T>& in, const std::vector<T>& w) {
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

/// How a test lays an image out: by planes, perhaps apart, or with NHWC and a gap behind them.
struct test_layout {
  bool last;
  std::int64_t channels, pixels;
  std::optional<nchw_strides> apart = {};

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

/// Runs one method with a plain epilogue and, by several threads, with an affine epilogue: every output is right and
/// visited once, and nothing is read or written beside what may be.
template <class T>
void check_method(kiln::thread_pool& pool, const conv_problem& p, conv_method method, bool in_nhwc, bool out_nhwc,
                  const std::vector<T>& planes, const std::vector<T>& w, const std::vector<double>& expected,
                  const std::optional<nchw_strides>& apart = {}) {
  SCOPED_TRACE(::testing::Message() << "method " << static_cast<int>(method) << " threads " << pool.size()
                                    << " NHWC: in " << in_nhwc << " out " << out_nhwc);
  const test_layout from{in_nhwc, p.in_channels, p.input_pixels()},
      to{out_nhwc, p.out_channels, p.output_pixels(), apart};
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
                 if (out_nhwc)
                   c[j * c_row + r] += added(pixel / pixels, channel0 + r, pixel % pixels);
                 else
                   c[r * c_row + j] += added(image, channel0 + r, pixel);
               }
           });
  double tolerance = (std::is_same_v<T, float> ? 1e-6 : 1e-14) * static_cast<double>(p.depth() + channels + pixels + 1);
  // points of 2 and -2
  if (method == conv_method::winograd_4x4 || method == conv_method::winograd_1d ||
      (method == conv_method::winograd_2x2 && p.kernel[1] == 5 && p.stride[1] == 1))
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
  for (const T& x : out) ASSERT_EQ(x, T(-77)) << "written between or after the outputs";

  if (pool.size() == 1) return;
  // An epilogue that the kernels apply to their sums: a bias for each channel, another image, a bound; an offset for
  // NCHW.
  const test_layout added_at{out_nhwc, channels, pixels};
  const auto bias = random_values<T>(channels, 3);
  const auto addend = random_values<T>(static_cast<std::int64_t>(added_at.size(p.batch)), 4);
  affine_epilogue<T> affine{.addend = addend.data(), .clamps = true};
  affine.addend_row = out_nhwc ? added_at.layout().step : pixels;
  if (out_nhwc)
    affine.col_bias[1] = bias.data(), affine.low = T(-.75);
  else
    affine.row_bias = bias.data(), affine.row_period = channels, affine.offset = T(.125), affine.high = T(.75);
  conv.run(pool, in.data(), weights.data(), out.data(), scratch.data(),
           affine_conv_epilogue<T>{affine, channels, out_nhwc});
  i = 0;
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t x = 0; x < pixels; ++x, ++i) {
        const std::size_t at = to.at(n, c, x);
        const T more = bias[static_cast<std::size_t>(c)] + addend[added_at.at(n, c, x)];
        const double sum = expected[i] + static_cast<double>(affine.offset + more);
        const double bound = out_nhwc ? std::max(sum, -.75) : std::min(sum, .75);
        ASSERT_NEAR(static_cast<double>(out[at]), bound, tolerance) << n << ' ' << c << ' ' << x;
        out[at] = T(-77);
      }
  for (const T& x : out) ASSERT_EQ(x, T(-77)) << "written between or after the outputs, by an epilogue";
  for (std::size_t k = scratch_size; k < scratch.size(); ++k)
    ASSERT_EQ(scratch[k], T(5)) << "written after the scratch";
}

/// By one thread and by several, for each pair of layouts, calls `each(with, in_nhwc, out_nhwc)`, where `with(method)`
/// checks a method.
template <class T, class Each> void check_problem(const conv_problem& p, const Each& each) {
  SCOPED_TRACE(::testing::Message() << "batch " << p.batch << " channels " << p.in_channels << " > " << p.out_channels
                                    << " groups " << p.groups << " input " << p.input[0] << ' ' << p.input[1] << ' '
                                    << p.input[2] << " kernel " << p.kernel[0] << ' ' << p.kernel[1] << ' '
                                    << p.kernel[2] << " stride " << p.stride[1] << ' ' << p.stride[2]);
  const auto in = random_values<T>(p.batch * p.in_channels * p.input_pixels(), 1);
  const auto w = random_values<T>(p.out_channels * p.depth(), 2);
  const auto expected = naive(p, in, w);
  for (unsigned threads : {1U, 3U}) {
    kiln::thread_pool pool(threads);
    for (const bool in_nhwc : {false, true})
      for (const bool out_nhwc : {false, true})
        each([&](conv_method method) { check_method(pool, p, method, in_nhwc, out_nhwc, in, w, expected); }, in_nhwc,
             out_nhwc);
  }
}

/// A problem of square kernels.
constexpr conv_problem plane(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t groups,
                             std::int64_t height, std::int64_t width, std::int64_t kernel, std::int64_t stride = 1,
                             std::int64_t pad = 0, std::int64_t dilation = 1) {
  conv_problem p{.batch = batch, .in_channels = in, .out_channels = out, .groups = groups};
  p.input = {1, height, width};
  p.kernel = {1, kernel, kernel};
  p.stride = {1, stride, stride};
  p.dilation = {1, dilation, dilation};
  p.pad_begin = p.pad_end = {0, pad, pad};
  return p;
}

}  // namespace kiln::testing

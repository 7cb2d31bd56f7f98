#pragma once

#include "kiln/kernel/conv/convolution.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernel/isa/random_values.hpp"
#include "kiln/backend/eigen/expanded_depthwise.hpp"
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

/// Doubles are tested at one level: no library has convolutions of them.
#if defined __AVX2__ && !defined __AVX512F__
using convolved = ::testing::Types<float, double>;
#else
using convolved = ::testing::Types<float>;
#endif

/// A convolution planned for its sizes, of float by libkiln_eigen of this level as it is shipped, of double by the
/// template: see `convolution` of its arguments and functions.
template <class T> class planned_convolution {
 public:
  using tile_function = std::function<void(std::int64_t image, std::int64_t channel0, std::int64_t channels,
                                           std::int64_t pixel0, std::int64_t pixels, T* c, std::ptrdiff_t c_row)>;
  struct epilogue {
    tile_function each = {};                     ///< called for each tile; empty: nothing is
    const affine_epilogue<T>* affine = nullptr;  ///< null: none; no `each` beside it
  };
  virtual ~planned_convolution() = default;
  virtual std::int64_t scratch_size() const = 0;
  virtual void run(kiln::thread_pool& pool, const T* in, const T* weights, T* out, T* scratch,
                   const epilogue& after = {}, const channel_prologue<T>* prologue = nullptr) const = 0;
};

template <class T>
std::unique_ptr<const planned_convolution<T>> plan_convolution(const conv_problem& p, unsigned workers,
                                                               conv_method method, const image_layout& in = {},
                                                               const image_layout& out = {}, bool has_prologue = false);

/// Runs one method with a plain epilogue and, by several threads, with an affine epilogue: every output is right and
/// visited once, and nothing is read or written beside what may be.
template <class T>
void check_method(kiln::thread_pool& pool, const conv_problem& p, conv_method method, bool in_nhwc, bool out_nhwc,
                  const std::vector<T>& planes, const std::vector<T>& w, const std::vector<double>& expected,
                  const std::optional<nchw_strides>& apart = {});

/// `pack_conv_weights` into a new vector, NaN where it writes nothing.
template <class T>
std::vector<T> packed_weights(kiln::thread_pool& pool, const conv_problem& p, conv_method method,
                              const std::vector<T>& w);

/// The steps of two convolutions of this level's library.
const eigen::expanded_depthwise_table& expanded_depthwise_of_level();

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

/// Checks each method that serves a problem.
template <class T> void check_all_methods(const conv_problem& p) {
  check_problem<T>(p, [&](const auto& with, bool in_nhwc, bool out_nhwc) {
    with(conv_method::direct_channels);
    // the others convert by the same code
    if (in_nhwc == out_nhwc) with(conv_method::im2col);
    if (in_nhwc == out_nhwc && p.group_inputs() == 1) with(conv_method::depthwise_nchw);
    if (in_nhwc == out_nhwc && direct_rows_convolution<T>::serves(p)) with(conv_method::direct_rows);
    if (!in_nhwc && winograd_1d_convolution<T>::serves(p)) with(conv_method::winograd_1d);
    if (nhwc_gemm_convolution<T>::serves(p)) with(conv_method::nhwc_gemm);
    if (winograd_convolution<T, 2>::serves(p) || winograd_convolution<T, 2, 5>::serves(p) ||
        winograd_convolution<T, 2, 3, 2>::serves(p) || winograd_convolution<T, 2, 5, 2>::serves(p))
      with(conv_method::winograd_2x2);
    if (winograd_convolution<T, 4>::serves(p)) with(conv_method::winograd_4x4);
    if (in_nhwc && depthwise_nhwc_convolution<T>::serves(p)) with(conv_method::depthwise_nhwc);
  });
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

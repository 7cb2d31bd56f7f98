#include "kernel/isa/convolution_check.hpp"

#include <atomic>
#include <cmath>
#include <limits>

#include "kiln/kernel/gemm/affine_epilogue.hpp"

namespace kiln::testing {

template <class T>
void run_plain(kiln::thread_pool& pool, const convolution<T>& conv, const T* in, const T* weights, T* out, T* scratch,
               const channel_prologue<T>* prologue) {
  conv.run(pool, in, weights, out, scratch, no_conv_epilogue{}, prologue);
}

template <class T>
std::vector<T> packed_weights(kiln::thread_pool& pool, const conv_problem& p, conv_method method,
                              const std::vector<T>& w) {
  std::vector<T> to(static_cast<std::size_t>(conv_weights_size<T>(p, method)), std::numeric_limits<T>::quiet_NaN());
  pack_conv_weights(pool, p, method, to.data(), w.data());
  return to;
}

template <class T>
void check_method(kiln::thread_pool& pool, const conv_problem& p, conv_method method, bool in_nhwc, bool out_nhwc,
                  const std::vector<T>& planes, const std::vector<T>& w, const std::vector<double>& expected,
                  const std::optional<nchw_strides>& apart) {
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
  const std::vector<T> weights = packed_weights(pool, p, method, w);
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
  // An epilogue that the kernels apply to their sums: a bias for each channel, another image, a bound, an activation;
  // an offset for NCHW.
  const test_layout added_at{out_nhwc, channels, pixels};
  const auto bias = random_values<T>(channels, 3);
  const auto addend = random_values<T>(static_cast<std::int64_t>(added_at.size(p.batch)), 4);
  affine_epilogue<T> affine{.addend = addend.data(), .clamps = true};
  affine.addend_row = out_nhwc ? added_at.layout().step : pixels;
  if (out_nhwc)
    affine.col_bias[1] = bias.data(), affine.low = T(-.75), affine.then = {activation::function::hard_swish};
  else
    affine.row_bias = bias.data(), affine.row_period = channels, affine.offset = T(.125), affine.high = T(.75),
    affine.then = {activation::function::swish};
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
        const double gate = out_nhwc ? std::clamp(bound / 6 + .5, 0., 1.) : 1 / (1 + std::exp(-bound));
        // neither function is steeper than 1.5
        ASSERT_NEAR(static_cast<double>(out[at]), bound * gate, 1.5 * tolerance) << n << ' ' << c << ' ' << x;
        out[at] = T(-77);
      }
  for (const T& x : out) ASSERT_EQ(x, T(-77)) << "written between or after the outputs, by an epilogue";
  for (std::size_t k = scratch_size; k < scratch.size(); ++k)
    ASSERT_EQ(scratch[k], T(5)) << "written after the scratch";
}

#define KILN_CONVOLUTION_CHECK(type)                                                                                  \
  template void check_method<type>(kiln::thread_pool&, const conv_problem&, conv_method, bool, bool,                  \
                                   const std::vector<type>&, const std::vector<type>&, const std::vector<double>&,    \
                                   const std::optional<nchw_strides>&);                                               \
  template void run_plain<type>(kiln::thread_pool&, const convolution<type>&, const type*, const type*, type*, type*, \
                                const channel_prologue<type>*);                                                       \
  template std::vector<type> packed_weights<type>(kiln::thread_pool&, const conv_problem&, conv_method,               \
                                                  const std::vector<type>&)
KILN_CONVOLUTION_CHECK(float);
KILN_CONVOLUTION_CHECK(double);
#undef KILN_CONVOLUTION_CHECK

}  // namespace kiln::testing

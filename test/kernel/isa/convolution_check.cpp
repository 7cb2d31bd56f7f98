#include "kernel/isa/convolution_check.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "kiln/backend/eigen/isa_layout.hpp"

namespace kiln::testing {

namespace {

// A table of this level's library, whatever level the loader has taken for this process.
template <class Table> const Table& table_of_level(const char* name) {
  void* const library = ::dlopen(KILN_LEVEL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(::dlerror());
  const auto get = reinterpret_cast<const Table* (*)()>(::dlsym(library, name));
  if (!get) throw std::runtime_error(::dlerror());
  return *get();
}

const eigen::isa_table& kernels_of_level() {
  static const eigen::isa_table& table = []() -> const eigen::isa_table& {
    const auto& found = table_of_level<eigen::isa_table>("kiln_eigen_isa");
    if (found.layout != eigen::isa_layout() || found.vector_bytes != native_bytes)
      throw std::runtime_error(KILN_LEVEL_LIBRARY " is not of this level and of these headers");
    return found;
  }();
  return table;
}

class shipped final : public planned_convolution<float> {
 public:
  shipped(const conv_problem& p, unsigned workers, conv_method method, const image_layout& in, const image_layout& out,
          bool has_prologue)
      : plan_(kernels_of_level().plan_conv(p, workers, method, in, out, has_prologue)) {}
  std::int64_t scratch_size() const override { return plan_->scratch_floats(); }
  void run(kiln::thread_pool& pool, const float* in, const float* weights, float* out, float* scratch,
           const epilogue& after, const channel_prologue<float>* prologue) const override {
    eigen::conv_epilogue how{.affine = after.affine};
    if (after.each) {
      how.self = const_cast<tile_function*>(&after.each);
      how.call = [](void* self, std::int64_t image, std::int64_t channel0, std::int64_t channels, std::int64_t pixel0,
                    std::int64_t pixels, float* c, std::ptrdiff_t c_row) {
        (*static_cast<const tile_function*>(self))(image, channel0, channels, pixel0, pixels, c, c_row);
      };
    }
    plan_->run(pool, in, weights, out, scratch, how, prologue);
  }

 private:
  std::unique_ptr<const eigen::conv_plan> plan_;
};

[[maybe_unused]] std::int64_t weights_size(const conv_problem& p, conv_method method, float) {
  return kernels_of_level().conv_weight_floats(p, method);
}
void pack(kiln::thread_pool& pool, const conv_problem& p, conv_method method, float* to, const std::byte* weights) {
  kernels_of_level().pack_conv_weights(pool, p, method, to, weights);
}

#if defined __AVX2__ && !defined __AVX512F__
class of_doubles final : public planned_convolution<double> {
 public:
  of_doubles(const conv_problem& p, unsigned workers, conv_method method, const image_layout& in,
             const image_layout& out, bool has_prologue)
      : convolution_(p, workers, method, in, out, has_prologue), channels_(p.out_channels), nhwc_(out.nhwc) {}
  std::int64_t scratch_size() const override { return convolution_.scratch_size(); }
  // one kind of epilogue for all: what each method is compiled with
  void run(kiln::thread_pool& pool, const double* in, const double* weights, double* out, double* scratch,
           const epilogue& after, const channel_prologue<double>* prologue) const override {
    convolution_.run(
        pool, in, weights, out, scratch,
        [&](std::int64_t image, std::int64_t channel0, std::int64_t channels, std::int64_t pixel0, std::int64_t pixels,
            double* c, std::ptrdiff_t c_row) {
          if (after.affine)
            affine_conv_epilogue<double>{*after.affine, channels_, nhwc_}(image, channel0, channels, pixel0, pixels, c,
                                                                          c_row);
          else if (after.each)
            after.each(image, channel0, channels, pixel0, pixels, c, c_row);
        },
        prologue);
  }

 private:
  convolution<double> convolution_;
  std::int64_t channels_;
  bool nhwc_;
};

std::int64_t weights_size(const conv_problem& p, conv_method method, double) {
  return conv_weights_size<double>(p, method);
}
void pack(kiln::thread_pool& pool, const conv_problem& p, conv_method method, double* to, const std::byte* weights) {
  pack_conv_weights(pool, p, method, to, weights);
}
#endif

}  // namespace

const eigen::expanded_depthwise_table& expanded_depthwise_of_level() {
  static const auto& table = table_of_level<eigen::expanded_depthwise_table>("kiln_eigen_expanded_depthwise");
  return table;
}

template <>
std::unique_ptr<const planned_convolution<float>> plan_convolution(const conv_problem& p, unsigned workers,
                                                                   conv_method method, const image_layout& in,
                                                                   const image_layout& out, bool has_prologue) {
  return std::make_unique<shipped>(p, workers, method, in, out, has_prologue);
}

template <class T>
std::vector<T> packed_weights(kiln::thread_pool& pool, const conv_problem& p, conv_method method,
                              const std::vector<T>& w) {
  std::vector<T> to(static_cast<std::size_t>(weights_size(p, method, T())), std::numeric_limits<T>::quiet_NaN());
  pack(pool, p, method, to.data(), reinterpret_cast<const std::byte*>(w.data()));
  // the same of weights at an odd address, as a file may have them
  const std::size_t bytes = w.size() * sizeof(T);
  std::vector<std::byte> moved(bytes + 1);
  std::memcpy(moved.data() + 1, w.data(), bytes);
  std::vector<T> again(to.size(), std::numeric_limits<T>::quiet_NaN());
  pack(pool, p, method, again.data(), moved.data() + 1);
  if (!to.empty() && std::memcmp(to.data(), again.data(), to.size() * sizeof(T)) != 0)
    ADD_FAILURE() << "weights at an odd address are packed otherwise";
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
  const auto conv = plan_convolution<T>(p, pool.size(), method, from.layout(), to.layout());
  const std::vector<T> weights = packed_weights(pool, p, method, w);
  // Unwritten scratch must not reach a result, nor may anything be written behind it.
  const auto scratch_size = static_cast<std::size_t>(conv->scratch_size());
  std::vector<T> scratch(scratch_size + 32, std::numeric_limits<T>::quiet_NaN());
  for (std::size_t i = scratch_size; i < scratch.size(); ++i) scratch[i] = T(5);
  std::vector<T> out(to.size(p.batch) + 32, T(-77));
  std::vector<std::atomic<int>> visits(expected.size());
  const std::int64_t pixels = p.output_pixels(), channels = p.out_channels;
  const auto added = [&](std::int64_t image, std::int64_t channel, std::int64_t pixel) {
    ++visits.at(test_layout{false, channels, pixels}.at(image, channel, pixel));
    return T(channel) - T(0.25) * T(pixel) + T(image);
  };
  conv->run(pool, in.data(), weights.data(), out.data(), scratch.data(),
            {.each = [&](std::int64_t image, std::int64_t channel0, std::int64_t channel_count, std::int64_t pixel0,
                         std::int64_t pixel_count, T* c, std::ptrdiff_t c_row) {
              for (std::int64_t r = 0; r < channel_count; ++r)
                for (std::int64_t j = 0; j < pixel_count; ++j) {
                  const std::int64_t pixel = pixel0 + j;
                  if (out_nhwc)
                    c[j * c_row + r] += added(pixel / pixels, channel0 + r, pixel % pixels);
                  else
                    c[r * c_row + j] += added(image, channel0 + r, pixel);
                }
            }});
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
  conv->run(pool, in.data(), weights.data(), out.data(), scratch.data(), {.affine = &affine});
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

#define KILN_CONVOLUTION_CHECK(type)                                                                               \
  template void check_method<type>(kiln::thread_pool&, const conv_problem&, conv_method, bool, bool,               \
                                   const std::vector<type>&, const std::vector<type>&, const std::vector<double>&, \
                                   const std::optional<nchw_strides>&);                                            \
  template std::vector<type> packed_weights<type>(kiln::thread_pool&, const conv_problem&, conv_method,            \
                                                  const std::vector<type>&)
KILN_CONVOLUTION_CHECK(float);
#if defined __AVX2__ && !defined __AVX512F__
template <>
std::unique_ptr<const planned_convolution<double>> plan_convolution(const conv_problem& p, unsigned workers,
                                                                    conv_method method, const image_layout& in,
                                                                    const image_layout& out, bool has_prologue) {
  return std::make_unique<of_doubles>(p, workers, method, in, out, has_prologue);
}
KILN_CONVOLUTION_CHECK(double);
#endif
#undef KILN_CONVOLUTION_CHECK

}  // namespace kiln::testing

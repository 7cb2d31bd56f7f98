#pragma once
#include "kiln/core/math.hpp"
#include "kiln/core/simd.hpp"
#include "kiln/kernel/pooling_problem.hpp"

// Static programs instantiate this text.
namespace kiln::kernels {

/// x^-beta for positive x: the common 0.75 by two square roots, others through exp and log.
template <class V>
KILN_FN V negative_power(V x, float beta) {
  if (beta == 0.75F) return splat<V>(1.0F) / sqrt(x * sqrt(x));
  if (beta == 0.5F) return splat<V>(1.0F) / sqrt(x);
  return exp(log(x) * splat<V>(-beta));
}

/// Local response normalisation of some pixels. Sums of squares are made afresh for each channel: a running sum would
/// cancel badly where squares differ by orders of magnitude.
class normalised_pixels {
  using V = native_vec<float>;
  static constexpr int lanes = native_lanes<float>;

 public:
  KILN_FN explicit normalised_pixels(const lrn_problem& p) : p_(p), before_((p.size - 1) / 2), after_(p.size / 2) {}

  /// Some pixels side by side in planes, `count` at most `most_columns` vectors: whole lines of a plane are read.
  static constexpr std::int64_t most_columns = 4;
  KILN_FN void of_planes(const float* x, std::int64_t x_plane, float* y, std::int64_t y_plane,
                         std::int64_t count) const {
    for (std::int64_t c = 0; c < p_.channels; ++c) {
      const std::int64_t begin = c > before_ ? c - before_ : 0, end = least(p_.channels, c + after_ + 1);
      const float* const coming = x + least(p_.channels - 1, c + after_ + 4) * x_plane;
      for (std::int64_t i = 0; i < count; i += lanes) {
        const int n = static_cast<int>(least(lanes, count - i));
        __builtin_prefetch(coming + i);
        V sum{};
        for (std::int64_t k = begin; k < end; ++k) {
          const V v = load_n<V>(x + k * x_plane + i, n);
          sum += v * v;
        }
        store_n(y + c * y_plane + i, load_n<V>(x + c * x_plane + i, n) * scale(sum), n);
      }
    }
  }

  /// One pixel whose channels are contiguous.
  KILN_FN void of_channels(const float* x, float* y) const {
    for (std::int64_t c = 0; c < p_.channels; c += chunk) {
      const std::int64_t count = least(chunk, p_.channels - c);
      // squares[i] is of channel c - before + i, zero where there is none
      float squares[chunk + most_lrn_window + lanes];
      const std::int64_t begin = before_ > c ? before_ - c : 0;
      const std::int64_t end = least(p_.channels - c, count + after_) + before_;
      for (std::int64_t i = 0; i < begin; i += lanes) store(squares + i, V{});
      for (std::int64_t i = begin; i < end; i += lanes) {
        const V v = load_n<V>(x + c - before_ + i, static_cast<int>(least(lanes, end - i)));
        store(squares + i, v * v);
      }
      for (std::int64_t i = end; i < count + p_.size - 1; i += lanes) store(squares + i, V{});
      for (std::int64_t i = 0; i < count; i += lanes) {
        const int n = static_cast<int>(least(lanes, count - i));
        V sum{};
        for (std::int64_t k = 0; k < p_.size; ++k) sum += load_n<V>(squares + i + k, n);
        store_n(y + c + i, load_n<V>(x + c + i, n) * scale(sum), n);
      }
    }
  }

 private:
  static constexpr std::int64_t chunk = 512;
  static KILN_FN std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

  KILN_FN V scale(V sum) const {
    const V factor = splat<V>(p_.alpha / static_cast<float>(p_.size));
    return negative_power(fma(factor, sum, splat<V>(p_.bias)), p_.beta);
  }

  const lrn_problem& p_;
  std::int64_t before_, after_;
};

}  // namespace kiln::kernels

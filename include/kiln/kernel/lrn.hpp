#pragma once
#include <algorithm>

#include "kiln/core/math.hpp"
#include "kiln/kernel/gemm_pack.hpp"
#include "kiln/kernel/pooling_problem.hpp"

namespace kiln::kernels {

/// x^-beta for positive x: the common 0.75 by two square roots, others through exp and log.
template <class V>
V negative_power(V x, float beta) {
  if (beta == 0.75F) return broadcast<V>(1.0F) / sqrt(x * sqrt(x));
  if (beta == 0.5F) return broadcast<V>(1.0F) / sqrt(x);
  return exp(log(x) * broadcast<V>(-beta));
}

/// Local response normalisation of some pixels. Sums of squares are made afresh for each channel: a running sum would
/// cancel badly where squares differ by orders of magnitude.
class normalised_pixels {
  using V = native_vec<float>;
  static constexpr int lanes = native_lanes<float>;

 public:
  explicit normalised_pixels(const lrn_problem& p) : p_(p), before_((p.size - 1) / 2), after_(p.size / 2) {}

  /// Pixels [first, first + count) of planes, `count` at most `most_columns` vectors: whole lines of a plane are read.
  static constexpr std::int64_t most_columns = 4;
  void of_planes(std::int64_t image, std::int64_t first, std::int64_t count) const {
    const std::int64_t at = image * p_.channels * p_.pixels + first;
    for (std::int64_t c = 0; c < p_.channels; ++c) {
      const std::int64_t begin = std::max<std::int64_t>(0, c - before_), end = std::min(p_.channels, c + after_ + 1);
      const float* const coming = p_.x + at + std::min(p_.channels - 1, c + after_ + 4) * p_.pixels;
      for (std::int64_t i = 0; i < count; i += lanes) {
        const int n = static_cast<int>(std::min<std::int64_t>(lanes, count - i));
        __builtin_prefetch(coming + i);
        V sum{};
        for (std::int64_t k = begin; k < end; ++k) {
          const V x = load_n<V>(p_.x + at + k * p_.pixels + i, n);
          sum += x * x;
        }
        const V x = load_n<V>(p_.x + at + c * p_.pixels + i, n);
        store_n(p_.y + at + c * p_.pixels + i, x * scale(sum), n);
      }
    }
  }

  /// One pixel whose channels are contiguous.
  void of_channels(const float* x, float* y) const {
    for (std::int64_t c = 0; c < p_.channels; c += chunk) {
      const std::int64_t count = std::min(chunk, p_.channels - c);
      // squares[i] is of channel c - before + i, zero where there is none
      float squares[chunk + most_lrn_window + lanes];
      const std::int64_t begin = std::max<std::int64_t>(0, before_ - c);
      const std::int64_t end = std::min(p_.channels - c, count + after_) + before_;
      for (std::int64_t i = 0; i < begin; i += lanes) store(squares + i, V{});
      for (std::int64_t i = begin; i < end; i += lanes) {
        const V v = load_n<V>(x + c - before_ + i, static_cast<int>(std::min<std::int64_t>(lanes, end - i)));
        store(squares + i, v * v);
      }
      for (std::int64_t i = end; i < count + p_.size - 1; i += lanes) store(squares + i, V{});
      for (std::int64_t i = 0; i < count; i += lanes) {
        const int n = static_cast<int>(std::min<std::int64_t>(lanes, count - i));
        V sum{};
        for (std::int64_t k = 0; k < p_.size; ++k) sum += load_n<V>(squares + i + k, n);
        store_n(y + c + i, load_n<V>(x + c + i, n) * scale(sum), n);
      }
    }
  }

 private:
  static constexpr std::int64_t chunk = 512;

  V scale(V sum) const {
    const V factor = broadcast<V>(p_.alpha / static_cast<float>(p_.size));
    return negative_power(fma(factor, sum, broadcast<V>(p_.bias)), p_.beta);
  }

  const lrn_problem& p_;
  std::int64_t before_, after_;
};

/// Local response normalisation of planes, or of images whose channels are last.
inline void local_response_norm(thread_pool& pool, const lrn_problem& p) {
  const normalised_pixels part(p);
  const bool last = p.x_step != 0;
  const std::int64_t each =
      last ? std::max<std::int64_t>(1, 4096 / p.channels) : normalised_pixels::most_columns * native_lanes<float>;
  const std::int64_t tasks = ceil_div(p.pixels, each);
  pool.parallel_for(p.batch * tasks, [&](std::int64_t task, unsigned) {
    const std::int64_t image = task / tasks, first = task % tasks * each, count = std::min(each, p.pixels - first);
    if (!last) return part.of_planes(image, first, count);
    for (std::int64_t i = image * p.pixels + first; i < image * p.pixels + first + count; ++i)
      part.of_channels(p.x + i * p.x_step, p.y + i * p.y_step);
  });
}

}  // namespace kiln::kernels

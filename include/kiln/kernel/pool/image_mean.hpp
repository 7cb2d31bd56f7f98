#pragma once

#include <algorithm>

#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::kernels {

/// Means of whole images in NHWC. Pixels are cut into chunks, whose sums are added at the end, and channels into groups
/// of a few vectors; sizes alone say how, so that the number of workers changes no bit.
template <class T> class image_mean {
  using V = native_vec<T>;
  static constexpr int lanes = native_lanes<T>, vectors = 8;

 public:
  image_mean(std::int64_t batch, std::int64_t pixels, std::int64_t channels)
      : batch_(batch),
        pixels_(pixels),
        channels_(channels),
        chunk_(std::max(ceil_div(pixels, most_chunks), least_pixels)),
        chunks_(std::max<std::int64_t>(1, ceil_div(pixels, chunk_))) {}

  /// Elements of scratch.
  std::int64_t scratch_size() const { return chunks_ == 1 ? 0 : batch_ * chunks_ * channels_; }

  /// Writes y[batch, channels] of x, whose pixels are `step` elements apart.
  void run(thread_pool& pool, const T* x, std::ptrdiff_t step, T* y, T* scratch) const {
    const std::int64_t groups = ceil_div(channels_, vectors * lanes);
    const T scale = T(1) / static_cast<T>(pixels_);
    pool.parallel_for(batch_ * chunks_ * groups, [&](std::int64_t task, unsigned) {
      const std::int64_t at = task / groups, first = at % chunks_ * chunk_, c = task % groups * (vectors * lanes);
      const T* const from = x + (at / chunks_ * pixels_ + first) * step + c;
      T* const to = (chunks_ == 1 ? y : scratch) + at * channels_ + c;
      sum(from, step, std::min(chunk_, pixels_ - first), std::min<std::int64_t>(vectors * lanes, channels_ - c), to,
          chunks_ == 1 ? scale : T(1));
    });
    if (chunks_ == 1) return;
    pool.parallel_for(batch_, [&](std::int64_t image, unsigned) {
      for (std::int64_t c = 0; c < channels_; c += vectors * lanes)
        sum(scratch + image * chunks_ * channels_ + c, channels_, chunks_,
            std::min<std::int64_t>(vectors * lanes, channels_ - c), y + image * channels_ + c, scale);
    });
  }

 private:
  static constexpr std::int64_t most_chunks = 16, least_pixels = 64;

  // to[count] = scale times the sum of `rows` rows.
  static void sum(const T* from, std::ptrdiff_t step, std::int64_t rows, std::int64_t count, T* to, T scale) {
    if (count == vectors * lanes) {
      V sums[vectors] = {};
      for (std::int64_t r = 0; r < rows; ++r, from += step) {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) sums[v] += load<V>(from + v * lanes);
      }
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) store(to + v * lanes, sums[v] * broadcast<V>(scale));
      return;
    }
    for (std::int64_t c = 0; c < count; c += lanes) {
      const int some = static_cast<int>(std::min<std::int64_t>(lanes, count - c));
      V all{};
      for (std::int64_t r = 0; r < rows; ++r) all += load_n<V>(from + r * step + c, some);
      store_n(to + c, all * broadcast<V>(scale), some);
    }
  }

  std::int64_t batch_, pixels_, channels_, chunk_, chunks_;
};

}  // namespace kiln::kernels

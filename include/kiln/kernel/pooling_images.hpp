#pragma once

#include <limits>

#include "kiln/core/math.hpp"
#include "kiln/kernel/gemm_pack.hpp"
#include "kiln/kernel/pooling_problem.hpp"

namespace kiln::kernels {

/// Pooling of images whose channels are last: vectors run over channels.
class pooled_rows {
  using V = native_vec<float>;
  static constexpr int lanes = native_lanes<float>;

 public:
  pooled_rows(const pooling_problem& p, const pooled_images& images) : p_(p), images_(images) {}

  /// Output row h of depth d of an image.
  void run(std::int64_t image, std::int64_t d, std::int64_t h) const {
    const pool_window wd = window(0, d), wh = window(1, h);
    const std::int64_t outer = p_.average ? wd.counted() * wh.counted() : 0;
    const float* const x = p_.x + image * p_.input[0] * p_.input[1] * p_.input[2] * images_.x_step;
    float* const y = p_.y + ((image * p_.output[0] + d) * p_.output[1] + h) * p_.output[2] * images_.y_step;
    for (std::int64_t w = 0; w < p_.output[2]; ++w) {
      const pool_window ww = window(2, w);
      const std::int64_t counted = p_.average ? outer * ww.counted() : 0;
      std::int64_t c = 0;
      for (; c + 4 * lanes <= images_.channels; c += 4 * lanes)
        pixel<4>(x + c, wd, wh, ww, counted, y + w * images_.y_step + c, lanes);
      for (; c + 2 * lanes <= images_.channels; c += 2 * lanes)
        pixel<2>(x + c, wd, wh, ww, counted, y + w * images_.y_step + c, lanes);
      for (; c < images_.channels; c += lanes)
        pixel<1>(x + c, wd, wh, ww, counted, y + w * images_.y_step + c,
                 static_cast<int>(std::min<std::int64_t>(lanes, images_.channels - c)));
    }
  }

 private:
  pool_window window(std::size_t axis, std::int64_t at) const { return {p_, axis, at}; }

  template <int Vectors>
  void pixel(const float* x, const pool_window& wd, const pool_window& wh, const pool_window& ww, std::int64_t counted,
             float* y, int count) const {
    V acc[Vectors];
    for (V& a : acc) a = broadcast<V>(p_.average ? 0.0F : -std::numeric_limits<float>::infinity());
    for (std::int64_t a = wd.first; a < wd.last; a += wd.step)
      for (std::int64_t b = wh.first; b < wh.last; b += wh.step) {
        const float* const row = x + (a * p_.input[1] + b) * p_.input[2] * images_.x_step;
        for (std::int64_t c = ww.first; c < ww.last; c += ww.step)
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v) {
            const float* const at = row + c * images_.x_step + v * lanes;
            const V value = count == lanes ? load<V>(at) : load_n<V>(at, count);
            acc[v] = p_.average ? acc[v] + value : max(acc[v], value);
          }
      }
    const V factor = broadcast<V>(static_cast<float>(counted));
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const V result = !p_.average ? acc[v] : counted == 0 ? V{} : acc[v] / factor;
      if (count == lanes)
        store(y + v * lanes, result);
      else
        store_n(y + v * lanes, result, count);
    }
  }

  const pooling_problem& p_;
  const pooled_images& images_;
};

/// Pools images whose channels are last; a task is a few output rows.
inline void pool_images(thread_pool& pool, const pooling_problem& p, const pooled_images& images) {
  const std::int64_t rows = images.batch * p.output[0] * p.output[1];
  const std::int64_t work = p.output[2] * p.window[0] * p.window[1] * p.window[2] * images.channels;
  const std::int64_t each = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, work));
  pool.parallel_for(ceil_div(rows, each), [&](std::int64_t task, unsigned) {
    for (std::int64_t row = task * each; row < std::min(rows, (task + 1) * each); ++row)
      pooled_rows(p, images).run(row / p.output[1] / p.output[0], row / p.output[1] % p.output[0], row % p.output[1]);
  });
}

}  // namespace kiln::kernels

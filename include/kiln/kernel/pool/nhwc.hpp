#pragma once

#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/kernel/pool/fold.hpp"

namespace kiln::kernels {

/// NHWC pooling of output rows: vectors run over channels.
template <bool Average> class nhwc_pooled_row {
  using V = native_vec<float>;
  using fold = pooling_fold<Average>;
  static constexpr int lanes = native_lanes<float>;

 public:
  /// Channels that are best pooled together.
  static constexpr std::int64_t group = 4 * lanes;

  nhwc_pooled_row(const pooling_problem& p, const nhwc_pooling& images) : p_(p), images_(images) {}

  /// Channels [begin, end) of output row h of depth d of an image.
  void run(std::int64_t image, std::int64_t d, std::int64_t h, std::int64_t begin, std::int64_t end) const {
    const pool_window wd = window(0, d), wh = window(1, h);
    const float* const x = p_.x + image * p_.input[0] * p_.input[1] * p_.input[2] * images_.x_step;
    float* const y = p_.y + ((image * p_.output[0] + d) * p_.output[1] + h) * p_.output[2] * images_.y_step;
    const bool slides = p_.window[0] == 1 && p_.dilation[1] == 1 && p_.dilation[2] == 1 && end - begin >= lanes;
    if (slides && p_.window[2] == 3 && p_.stride[2] == 1) return slide<3, 1>(x, wd, wh, begin, end, y);
    if (slides && p_.window[2] == 3 && p_.stride[2] == 2) return slide<3, 2>(x, wd, wh, begin, end, y);
    if (slides && p_.window[2] == 2 && p_.stride[2] == 1) return slide<2, 1>(x, wd, wh, begin, end, y);
    for (std::int64_t w = 0; w < p_.output[2]; ++w) {
      const pool_window ww = window(2, w);
      const float divisor = divisor_of(wd, wh, ww);
      float* const to = y + w * images_.y_step;
      std::int64_t c = begin;
      for (; c + group <= end; c += group) pixel<4>(x + c, wd, wh, ww, divisor, to + c, lanes);
      for (; c + 2 * lanes <= end; c += 2 * lanes) pixel<2>(x + c, wd, wh, ww, divisor, to + c, lanes);
      for (; c < end; c += lanes)
        pixel<1>(x + c, wd, wh, ww, divisor, to + c, static_cast<int>(std::min<std::int64_t>(lanes, end - c)));
    }
  }

 private:
  pool_window window(std::size_t axis, std::int64_t at) const { return {p_, axis, at}; }
  float divisor_of(const pool_window& d, const pool_window& h, const pool_window& w) const {
    return Average ? pool_divisor(d.counted() * h.counted() * w.counted()) : 1;
  }
  static V finished(V sum, float divisor) {
    if constexpr (Average) return sum / broadcast<V>(divisor);
    return sum;
  }

  template <int Window, int Stride>
  void slide(const float* x, const pool_window& wd, const pool_window& wh, std::int64_t begin, std::int64_t end,
             float* y) const {
    std::int64_t c = begin;
    for (; c + group <= end; c += group) columns<Window, Stride, 4>(x + c, wd, wh, y + c);
    // the last vector overlaps the one before
    for (; c < end; c += lanes) {
      const std::int64_t from = std::min(c, end - lanes);
      columns<Window, Stride, 1>(x + from, wd, wh, y + from);
    }
  }

  // Some channels of an output row: the rows of a window are combined column by column, and a column that the next
  // window shares stays in registers.
  template <int Window, int Stride, int Vectors>
  void columns(const float* x, const pool_window& wd, const pool_window& wh, float* y) const {
    constexpr int shared = Window - Stride;
    const std::int64_t width = p_.input[2], row = width * images_.x_step;
    const std::int64_t rows = wd.first < wd.last ? wh.last - wh.first : 0;
    x += (wd.first * p_.input[1] + wh.first) * row;
    V column[Window][Vectors];
    const auto read = [&](std::int64_t at, V(&to)[Vectors]) __attribute__((always_inline)) {
      const bool inside = rows > 0 && at >= 0 && at < width;
      const float* from = x + at * images_.x_step;
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) to[v] = inside ? load<V>(from + v * lanes) : broadcast<V>(fold::neutral);
      for (std::int64_t r = 1; inside && r < rows; ++r) {
        from += row;
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) to[v] = fold::combine(to[v], load<V>(from + v * lanes));
      }
    };
    std::int64_t at = -p_.pad_begin[2];
#pragma GCC unroll 2
    for (int k = 0; k < shared; ++k) read(at++, column[k]);
    for (std::int64_t w = 0; w < p_.output[2]; ++w, y += images_.y_step) {
#pragma GCC unroll 3
      for (int k = shared; k < Window; ++k) read(at++, column[k]);
      const float divisor = divisor_of(wd, wh, window(2, w));
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        V sum = column[0][v];
#pragma GCC unroll 3
        for (int k = 1; k < Window; ++k) sum = fold::combine(sum, column[k][v]);
        store(y + v * lanes, finished(sum, divisor));
#pragma GCC unroll 2
        for (int k = 0; k < shared; ++k) column[k][v] = column[k + Stride][v];
      }
    }
  }

  template <int Vectors>
  void pixel(const float* x, const pool_window& wd, const pool_window& wh, const pool_window& ww, float divisor,
             float* y, int count) const {
    V acc[Vectors];
    for (V& a : acc) a = broadcast<V>(fold::neutral);
    for (std::int64_t a = wd.first; a < wd.last; a += wd.step)
      for (std::int64_t b = wh.first; b < wh.last; b += wh.step) {
        const float* const row = x + (a * p_.input[1] + b) * p_.input[2] * images_.x_step;
        for (std::int64_t c = ww.first; c < ww.last; c += ww.step)
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v) {
            const float* const at = row + c * images_.x_step + v * lanes;
            acc[v] = fold::combine(acc[v], Vectors > 1 ? load<V>(at) : load_n<V>(at, count));
          }
      }
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      if (Vectors > 1)
        store(y + v * lanes, finished(acc[v], divisor));
      else
        store_n(y + v * lanes, finished(acc[v], divisor), count);
    }
  }

  const pooling_problem& p_;
  const nhwc_pooling& images_;
};

/// Pools images in NHWC; a task is a few output rows, or some channels of one where rows are few.
template <bool Average> void pool_nhwc(thread_pool& pool, const pooling_problem& p, const nhwc_pooling& images) {
  constexpr std::int64_t group = nhwc_pooled_row<Average>::group;
  const std::int64_t rows = images.batch * p.output[0] * p.output[1], groups = ceil_div(images.channels, group);
  const std::int64_t wanted = std::clamp<std::int64_t>(ceil_div(4 * pool.size(), rows), 1, groups);
  const std::int64_t channels = ceil_div(groups, wanted) * group, parts = ceil_div(images.channels, channels);
  const std::int64_t work = p.output[2] * p.window[0] * p.window[1] * p.window[2] * std::min(channels, images.channels);
  const std::int64_t each = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, work));
  pool.parallel_for(ceil_div(rows * parts, each), [&](std::int64_t task, unsigned) {
    for (std::int64_t i = task * each; i < std::min(rows * parts, (task + 1) * each); ++i) {
      const std::int64_t row = i / parts, first = i % parts * channels;
      nhwc_pooled_row<Average>(p, images).run(row / p.output[1] / p.output[0], row / p.output[1] % p.output[0],
                                              row % p.output[1], first, std::min(images.channels, first + channels));
    }
  });
}

inline void pool_nhwc(thread_pool& pool, const pooling_problem& p, const nhwc_pooling& images) {
  p.average ? pool_nhwc<true>(pool, p, images) : pool_nhwc<false>(pool, p, images);
}

}  // namespace kiln::kernels

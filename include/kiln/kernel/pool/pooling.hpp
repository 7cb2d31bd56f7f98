#pragma once
#include <algorithm>
#include <optional>

#include "kiln/kernel/conv/problem.hpp"
#include "kiln/kernel/pool/narrow.hpp"

namespace kiln::kernels {

/// NCHW pooling of one plane: the rows of a window are combined into one line, whose elements are then combined. The
/// next line is made before the elements of one are read: vectors that cross those that were just written would wait
/// until they have left the store buffer. A row that is a window's only one is read where it lies.
template <class fold, class T = float> class pooled_plane {
  using V = native_vec<T>;
  static constexpr int lanes = native_lanes<T>;
  static constexpr T neutral = fold::neutral;
  static constexpr std::int64_t line_size = 2048;

 public:
  pooled_plane(const pooling_problem& p, std::int64_t plane)
      : pooled_plane(p, p.plane_of_x(plane), p.plane_of_y(plane)) {}
  /// Of the plane at x, to y.
  pooled_plane(const pooling_problem& p, const T* x, T* y)
      : p_(p),
        x_(x),
        y_(y),
        span_((p.window[2] - 1) * p.dilation[2] + 1),
        most_((line_size - span_) / p.stride[2] + 1) {
    // The windows of columns [inner_, inner_end_) are entirely inside.
    inner_ = std::clamp<std::int64_t>(ceil_div(p.pad_begin[2], p.stride[2]), 0, p.output[2]);
    const std::int64_t room = p.input[2] + p.pad_begin[2] - span_;
    inner_end_ = room < 0 ? inner_ : std::clamp(room / p.stride[2] + 1, inner_, p.output[2]);
  }

  void run() const {
    if (span_ > line_size) return run_elements();
    alignas(64) T lines[2][line_size + 2 * lanes];
    std::optional<part> before;
    int line = 0;
    for (std::int64_t d = 0; d < p_.output[0]; ++d)
      for (std::int64_t h = 0; h < p_.output[1]; ++h)
        for (std::int64_t w = 0; w < p_.output[2]; w += most_) {
          const part now{window(0, d), window(1, h), w, std::min(most_, p_.output[2] - w),
                         y_ + (d * p_.output[1] + h) * p_.output[2] + w};
          if (const T* const row = only_row(now)) {
            finish(now, row, p_.input[2] - first_column(now));
            continue;
          }
          combine_rows(now, lines[line]);
          line = 1 - line;
          if (before) finish(*before, lines[line], line_size + 2 * lanes);
          before = now;
        }
    if (before) finish(*before, lines[1 - line], line_size + 2 * lanes);
  }

 private:
  // Outputs [w0, w0 + count) of a row.
  struct part {
    pool_window d, h;
    std::int64_t w0, count;
    T* out;
  };

  pool_window window(std::size_t axis, std::int64_t at) const { return {p_, axis, at}; }
  T divided(T sum, const pool_window& d, const pool_window& h, std::int64_t w) const {
    if constexpr (!fold::mean) return sum;
    const pool_window c = window(2, w);
    return sum / pool_divisor(d.counted() * h.counted() * c.counted());
  }

  void run_elements() const {
    T* out = y_;
    for (std::int64_t d = 0; d < p_.output[0]; ++d)
      for (std::int64_t h = 0; h < p_.output[1]; ++h)
        for (std::int64_t w = 0; w < p_.output[2]; ++w) *out++ = element(window(0, d), window(1, h), w);
  }
  T element(const pool_window& wd, const pool_window& wh, std::int64_t w) const {
    const pool_window ww = window(2, w);
    T sum = neutral;
    for (std::int64_t a = wd.first; a < wd.last; a += wd.step)
      for (std::int64_t b = wh.first; b < wh.last; b += wh.step)
        for (std::int64_t c = ww.first; c < ww.last; c += ww.step)
          sum = fold::combine(sum, fold::prepared(x_[(a * p_.input[1] + b) * p_.input[2] + c], p_));
    return fold::finished(divided(sum, wd, wh, w), p_);
  }

  // The input's column where the windows of a part begin.
  std::int64_t first_column(const part& of) const { return of.w0 * p_.stride[2] - p_.pad_begin[2]; }
  // Where the windows of a part begin in the only row that they cover; null where they cover others or padding.
  const T* only_row(const part& of) const {
    if constexpr (!fold::as_is) return nullptr;
    const auto is_one = [](const pool_window& w) { return w.first < w.last && w.first + w.step >= w.last; };
    if (!is_one(of.d) || !is_one(of.h) || of.w0 < inner_ || of.w0 + of.count > inner_end_) return nullptr;
    return x_ + (of.d.first * p_.input[1] + of.h.first) * p_.input[2] + first_column(of);
  }

  // Element i of the line is of input column w0 * stride - padding + i.
  void combine_rows(const part& of, T* line) const {
    const std::int64_t stride = p_.stride[2], first = first_column(of);
    const std::int64_t length = (of.count - 1) * stride + span_;
    const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, length);
    const std::int64_t end = std::clamp(p_.input[2] - first, begin, length);
    const V none = broadcast<V>(neutral);
    for (std::int64_t i = 0; i < begin; i += lanes) store(line + i, none);
    const auto column = [&](std::int64_t i, auto read) __attribute__((always_inline)) {
      V sum = none;
      for (std::int64_t a = of.d.first; a < of.d.last; a += of.d.step)
        for (std::int64_t b = of.h.first; b < of.h.last; b += of.h.step)
          sum = fold::combine(sum, fold::prepared(read(x_ + (a * p_.input[1] + b) * p_.input[2] + first + i), p_));
      store(line + i, sum);
    };
    std::int64_t i = begin;
    for (; i + lanes <= end; i += lanes) column(i, [](const T* at) { return load<V>(at); });
    if (i < end) {
      const int n = static_cast<int>(end - i);
      column(i, [n](const T* at) { return load_n<V>(at, n); });
    }
    for (i = end; i < length; i += lanes) store(line + i, none);
  }

  // `readable` elements of the line may be read.
  void finish(const part& of, const T* line, std::int64_t readable) const {
    along(line, of.count, of.out, readable);
    if constexpr (fold::mean) {
      const std::int64_t w0 = of.w0, last = w0 + of.count, low = std::clamp(inner_, w0, last),
                         high = std::clamp(inner_end_, low, last);
      T* const out = of.out;
      const V divisor = broadcast<V>(pool_divisor(p_.window[2] * of.d.counted() * of.h.counted()));
      for (std::int64_t w = w0; w < low; ++w) out[w - w0] = divided(out[w - w0], of.d, of.h, w);
      for (std::int64_t w = low; w < high; w += lanes) {
        const int some = static_cast<int>(std::min<std::int64_t>(lanes, high - w));
        store_n(out + w - w0, load_n<V>(out + w - w0, some) / divisor, some);
      }
      for (std::int64_t w = high; w < last; ++w) out[w - w0] = divided(out[w - w0], of.d, of.h, w);
    }
  }

  void along(const T* line, std::int64_t count, T* out, std::int64_t readable) const {
    const std::int64_t stride = p_.stride[2], step = p_.dilation[2];
    // whole vectors are read, past the last window's end
    const std::int64_t room = readable - span_ + 1 - stride * lanes;
    std::int64_t w = 0;
    for (; stride <= 2 && w < count && w * stride <= room; w += lanes) {
      V sum = broadcast<V>(neutral);
      const int n = static_cast<int>(std::min<std::int64_t>(lanes, count - w));
      for (std::int64_t c = 0; c < p_.window[2]; ++c) {
        const T* const at = line + w * stride + c * step;
        sum = fold::combine(sum, stride == 1 ? load<V>(at) : every_second_lane(load<V>(at), load<V>(at + lanes)));
      }
      store_n(out + w, fold::finished(sum, p_), n);
    }
    for (; w < count; ++w) {
      T sum = neutral;
      for (std::int64_t c = 0; c < p_.window[2]; ++c) sum = fold::combine(sum, line[w * stride + c * step]);
      out[w] = fold::finished(sum, p_);
    }
  }

  const pooling_problem& p_;
  const T* x_;
  T* y_;
  std::int64_t span_, most_;  // elements that a window spans along a row; outputs that a line serves
  std::int64_t inner_ = 0, inner_end_ = 0;
};

/// Mean or greatest element of whole planes.
template <class T> T reduce_plane(const T* x, std::int64_t n, bool average) {
  using V = native_vec<T>;
  constexpr int lanes = native_lanes<T>;
  V acc = broadcast<V>(average ? T(0) : -std::numeric_limits<T>::infinity());
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) acc = average ? acc + load<V>(x + i) : max(acc, load<V>(x + i));
  T result = average ? reduce_add(acc) : acc[0];
  if (!average)
    for (int k = 1; k < lanes; ++k) result = max(result, static_cast<T>(acc[k]));
  for (; i < n; ++i) result = average ? result + x[i] : max(result, x[i]);
  return average ? result / static_cast<T>(n) : result;
}

/// Whether the only window is the whole plane.
inline bool is_whole(const pooling_problem& p) {
  return p.output == pooling_problem::extents{1, 1, 1} && p.window == p.input &&
         p.pad_begin == pooling_problem::extents{} && p.pad_end == pooling_problem::extents{};
}

/// Calls `each(plane)` for every plane; a task is a few planes.
template <class Each> void for_each_plane(thread_pool& pool, const pooling_problem& p, Each&& each) {
  const std::int64_t in = p.input[0] * p.input[1] * p.input[2];
  const std::int64_t planes = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, in));
  pool.parallel_for((p.planes + planes - 1) / planes, [&](std::int64_t task, unsigned) {
    for (std::int64_t i = task * planes; i < std::min(p.planes, (task + 1) * planes); ++i) each(i);
  });
}

/// Pools every plane by the kernel that serves its window.
template <bool Average> void pool_windows(thread_pool& pool, const pooling_problem& p) {
  if constexpr (has_masked_loads) {
    if (narrow_pooling<Average>::serves(p)) {
      const narrow_pooling<Average> narrow(p);
      return for_each_plane(pool, p, [&](std::int64_t i) { narrow.run(i); });
    }
  }
  for_each_plane(pool, p, [&](std::int64_t i) { pooled_plane<pooling_fold<Average>>(p, i).run(); });
}

/// Pools every plane of an NCHW tensor.
inline void pool_nchw(thread_pool& pool, const pooling_problem& p) {
  if (p.norm != 0) return for_each_plane(pool, p, [&](std::int64_t i) { pooled_plane<norm_fold>(p, i).run(); });
  const std::int64_t in = p.input[0] * p.input[1] * p.input[2];
  if (is_whole(p))
    return for_each_plane(pool, p,
                          [&](std::int64_t i) { *p.plane_of_y(i) = reduce_plane(p.plane_of_x(i), in, p.average); });
  p.average ? pool_windows<true>(pool, p) : pool_windows<false>(pool, p);
}

}  // namespace kiln::kernels

#pragma once

#include <algorithm>
#include <type_traits>

#include "kiln/kernel/vector.hpp"

namespace kiln::kernels {

/// Whether vectors can be loaded under a mask without touching the masked memory, which the direct 3x3 kernel needs.
inline constexpr bool has_masked_loads = native_bytes == 64;

/// Which lanes of a vector that begins at column `first` lie inside a row of `extent` columns, as bits.
template <class T>
KILN_FN unsigned inside_lanes(std::int64_t first, std::int64_t extent) {
  constexpr std::int64_t n = native_lanes<T>;
  const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, n);
  const std::int64_t end = std::clamp<std::int64_t>(extent - first, begin, n);
  return ((1U << end) - 1) & ~((1U << begin) - 1);
}

/// The masked lanes at `from`, the others zero; `from` may point outside its array there.
template <class T>
KILN_FN native_vec<T> load_masked(const T* from, unsigned mask) {
  if constexpr (std::is_same_v<T, float>)
    return (native_vec<T>)_mm512_maskz_loadu_ps(static_cast<unsigned short>(mask), from);
  else
    return (native_vec<T>)_mm512_maskz_loadu_pd(static_cast<unsigned char>(mask), from);
}

/// One plane of a 3x3 convolution with one input channel, stride 1 or 2, read where it lies.
template <class T>
struct plane_3x3 {
  const T* in;
  std::int64_t height, width, pad_top, pad_left;
  const T* weight;  // 9
  T* out;
  std::int64_t out_width;

  /// Output rows [y, y + Rows), in all columns: each input row is loaded once for all the outputs that read it.
  template <int Stride, int Rows>
  KILN_FN void rows_at(std::int64_t y) const {
    using V = native_vec<T>;
    constexpr int n = native_lanes<T>;
    constexpr int in_rows = (Rows - 1) * Stride + 3;
    V w[9];
#pragma GCC unroll 9
    for (int i = 0; i < 9; ++i) w[i] = broadcast<V>(weight[i]);
    for (std::int64_t x = 0; x < out_width; x += n) {
      const std::int64_t first = x * Stride - pad_left;
      unsigned low[3];
      unsigned high[3];
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) {
        low[i] = inside_lanes<T>(first + i, width);
        if constexpr (Stride == 2) high[i] = inside_lanes<T>(first + i + n, width);
      }
      V sum[Rows];
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) sum[r] = V{};
#pragma GCC unroll 9
      for (int i = 0; i < in_rows; ++i) {
        const std::int64_t iy = y * Stride - pad_top + i;
        if (iy < 0 || iy >= height) continue;
        const T* const row = in + iy * width + first;
#pragma GCC unroll 3
        for (int kx = 0; kx < 3; ++kx) {
          V value = load_masked(row + kx, low[kx]);
          if constexpr (Stride == 2) value = every_second_lane(value, load_masked(row + kx + n, high[kx]));
#pragma GCC unroll 4
          for (int r = 0; r < Rows; ++r) {
            const int ky = i - r * Stride;
            if (ky >= 0 && ky < 3) sum[r] = multiply_add(value, w[ky * 3 + kx], sum[r]);
          }
        }
      }
      const int count = static_cast<int>(std::min<std::int64_t>(n, out_width - x));
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) store_n(out + (y + r) * out_width + x, sum[r], count);
    }
  }

  /// Output rows [begin, end).
  template <int Stride>
  void run(std::int64_t begin, std::int64_t end) const {
    std::int64_t y = begin;
    for (; y + 4 <= end; y += 4) rows_at<Stride, 4>(y);
    if (end - y == 3)
      rows_at<Stride, 3>(y);
    else if (end - y == 2)
      rows_at<Stride, 2>(y);
    else if (end - y == 1)
      rows_at<Stride, 1>(y);
  }
};

}  // namespace kiln::kernels

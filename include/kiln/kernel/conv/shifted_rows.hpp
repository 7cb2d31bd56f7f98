#pragma once

#include "kiln/kernel/conv/problem.hpp"
#include "kiln/kernel/gemm/pack.hpp"

namespace kiln::kernels {

/// The window of a convolution of one channel over rows that are stored so that every tap reads adjacent elements
/// (`column_phases`): tap (z, y, x) of output row r and column c reads
/// `planes[z] + (r * stride + y * dilation) * row + offset[x] + c`; its weight is the next one of each row of taps.
template <class T> struct window_rows {
  const T* planes = nullptr;           ///< of the first tap; null planes have no taps
  std::ptrdiff_t plane = 0;            ///< elements from one of the window's planes to the next
  std::int64_t first = 0, last = 1;    ///< the window's planes inside the input
  std::int64_t height = 1, width = 1;  ///< taps of a plane
  std::ptrdiff_t row = 0;
  std::int64_t stride = 1, dilation = 1;
  const std::int32_t* offset = nullptr;
  const T* weights = nullptr;
};

/// Sums of windows at `Rows` rows and `Vectors` vectors of columns from element `at` on, the last vector of `last`
/// columns. An input vector is loaded once for all rows of outputs that it meets: loads across lines of memory, not
/// products, bound the time of a row alone. `Side`: the window is one plane of Side x Side adjacent taps at stride 1,
/// whose loops are unrolled; 0 for any window.
template <int Rows, int Vectors, int Side, class T>
[[gnu::noinline]] void sum_window_rows(const window_rows<T>& w, std::ptrdiff_t at, T* out, std::ptrdiff_t out_row,
                                       int last) {
  using V = native_vec<T>;
  constexpr int n = native_lanes<T>;
  V sum[Rows][Vectors] = {};
  if constexpr (Side > 0) {
    const T* in = w.planes + at;
#pragma GCC unroll 16
    for (int i = 0; i < Rows + Side - 1; ++i, in += w.row)
#pragma GCC unroll 8
      for (int x = 0; x < Side; ++x) {
        V read[Vectors];
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) read[v] = load<V>(in + x + v * n);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          if (i < r || i - r >= Side) continue;
          const V by = broadcast<V>(w.weights[(i - r) * Side + x]);
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v) sum[r][v] = multiply_add(read[v], by, sum[r][v]);
        }
      }
  }
  const std::int64_t reach = (w.height - 1) * w.dilation;
  for (std::int64_t z = w.first; Side == 0 && z < w.last; ++z) {
    const T* in = w.planes + z * w.plane + at;
    const T* const taps = w.weights + z * w.height * w.width;
    for (std::int64_t i = 0; i <= (Rows - 1) * w.stride + reach; ++i, in += w.row) {
      const T* weight[Rows];
      bool any = false;
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        const std::int64_t y = i - r * w.stride;
        const bool meets = y >= 0 && y <= reach && (w.dilation == 1 || y % w.dilation == 0);
        weight[r] = meets ? taps + (w.dilation == 1 ? y : y / w.dilation) * w.width : nullptr;
        any = any || meets;
      }
      for (std::int64_t x = 0; any && x < w.width; ++x) {
        V read[Vectors];
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) read[v] = load<V>(in + w.offset[x] + v * n);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          if (!weight[r]) continue;
          const V by = broadcast<V>(weight[r][x]);
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v) sum[r][v] = multiply_add(read[v], by, sum[r][v]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
    T* const to = out + r * out_row;
#pragma GCC unroll 4
    for (int v = 0; v + 1 < Vectors; ++v) store(to + v * n, sum[r][v]);
    T* const end = to + (Vectors - 1) * n;
    last == n ? store(end, sum[r][Vectors - 1]) : store_n(end, sum[r][Vectors - 1], last);
  }
}

/// Sums of windows at `Rows` rows and all columns from `x` on, as many vectors at a time as fit registers.
template <int Rows, int Vectors, int Side, class T>
void sum_window_columns(const window_rows<T>& w, std::ptrdiff_t in, std::int64_t x, std::int64_t cols, T* out,
                        std::ptrdiff_t out_row) {
  constexpr int n = native_lanes<T>, before = (Vectors - 1) * n;
  for (; cols - x > before; x += Vectors * n)
    sum_window_rows<Rows, Vectors, Side>(w, in + x, out + x, out_row,
                                         static_cast<int>(std::min<std::int64_t>(n, cols - x - before)));
  if constexpr (Vectors > 1) sum_window_columns<Rows, Vectors - 1, Side>(w, in, x, cols, out, out_row);
}

/// Sums of windows at `rows` rows and `cols` columns. Rows are taken four at a time; the last four may begin within
/// those before them, and are computed alike.
template <class T>
void sum_windows(const window_rows<T>& w, std::int64_t rows, std::int64_t cols, T* out, std::ptrdiff_t out_row) {
  constexpr int together = 4;
  const auto at_rows = [&]<int Rows, int Side>(std::int64_t y) {
    constexpr int vectors = Rows == 1 ? 4 : 2;
    sum_window_columns<Rows, vectors, Side>(w, y * w.stride * w.row, std::int64_t{0}, cols, out + y * out_row, out_row);
  };
  if (rows < together) {
    for (std::int64_t y = 0; y < rows; ++y) at_rows.template operator()<1, 0>(y);
    return;
  }
  const auto all = [&]<int Side>() {
    for (std::int64_t y = 0; y < rows; y += together)
      at_rows.template operator()<together, Side>(std::min(y, rows - together));
  };
  const bool adjacent = w.first == 0 && w.last == 1 && w.stride == 1 && w.dilation == 1 && w.height == w.width &&
                        w.offset[w.width - 1] == w.width - 1;
  if (adjacent && w.width == 5) return all.template operator()<5>();
  if (adjacent && w.width == 7) return all.template operator()<7>();
  all.template operator()<0>();
}

}  // namespace kiln::kernels

#pragma once

#include "kiln/kernel/simd/transpose_square.hpp"

namespace kiln::kernels {

/// to[j * to_row + i] = from[i * from_row + j] for i < rows, j < cols.
template <class T>
[[gnu::noinline]] void transpose_block(const T* from, std::ptrdiff_t from_row, T* to, std::ptrdiff_t to_row,
                                       std::int64_t rows, std::int64_t cols) {
  constexpr int n = native_lanes<T>;
  for (std::int64_t i = 0; i < rows; i += n) {
    const int height = static_cast<int>(rows - i < n ? rows - i : n);
    for (std::int64_t j = 0; j < cols; j += n) {
      const int width = static_cast<int>(cols - j < n ? cols - j : n);
      const T* const in = from + i * from_row + j;
      T* const out = to + j * to_row + i;
      native_vec<T> row[n];
      if (height == n && width == n) {
#pragma GCC unroll 64
        for (int r = 0; r < n; ++r) row[r] = load<native_vec<T>>(in + r * from_row);
        transpose_square<n>(row);
#pragma GCC unroll 64
        for (int r = 0; r < n; ++r) store(out + r * to_row, row[r]);
      } else {
        for (int r = 0; r < n; ++r)
          row[r] = r < height ? load_n<native_vec<T>>(in + r * from_row, width) : native_vec<T>{};
        transpose_square<n>(row);
        for (int r = 0; r < width; ++r) store_n(out + r * to_row, row[r], height);
      }
    }
  }
}

}  // namespace kiln::kernels

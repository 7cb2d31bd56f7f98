#pragma once

#include <utility>

#include "kiln/kernel/vector.hpp"

namespace kiln::kernels {

template <int Step, class V, int... Lane>
[[gnu::always_inline]] inline void exchange_lanes(V& low, V& high, std::integer_sequence<int, Lane...>) {
  constexpr int n = sizeof...(Lane);
  const V a = low;
  const V b = high;
  low = __builtin_shufflevector(a, b, ((Lane & Step) == 0 ? Lane : n + Lane - Step)...);
  high = __builtin_shufflevector(a, b, ((Lane & Step) == 0 ? Lane + Step : n + Lane)...);
}

/// Transposes the square matrix whose rows are `row[0 .. native_lanes<T>)`, by recursive exchange of off-diagonal
/// blocks (J. O. Eklundh, "A fast computer method for matrix transposing", 1972).
template <class T, int Step = 1>
[[gnu::always_inline]] inline void transpose_square(native_vec<T> (&row)[native_lanes<T>]) {
  if constexpr (Step < native_lanes<T>) {
#pragma GCC unroll 64
    for (int r = 0; r < native_lanes<T>; ++r)
      if ((r & Step) == 0)
        exchange_lanes<Step>(row[r], row[r + Step], std::make_integer_sequence<int, native_lanes<T>>{});
    transpose_square<T, Step * 2>(row);
  }
}

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
        transpose_square<T>(row);
#pragma GCC unroll 64
        for (int r = 0; r < n; ++r) store(out + r * to_row, row[r]);
      } else {
        for (int r = 0; r < n; ++r)
          row[r] = r < height ? load_n<native_vec<T>>(in + r * from_row, width) : native_vec<T>{};
        transpose_square<T>(row);
        for (int r = 0; r < width; ++r) store_n(out + r * to_row, row[r], height);
      }
    }
  }
}

}  // namespace kiln::kernels

#pragma once

#include <algorithm>

#include "kiln/kernel/tile.hpp"
#include "kiln/kernel/transpose.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::kernels {

/// a / b, neither negative. Many processors divide numbers of 32 bits several times as quickly as those of 64, and a
/// short tile takes no longer than a few divisions of the latter.
constexpr std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if ((static_cast<std::uint64_t>(a) | static_cast<std::uint64_t>(b)) >> 32 == 0) [[likely]]
    return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return quotient(a + b - 1, b); }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

/// Width of the panel that begins at column `col`: a full tile, or what is left, rounded up to whole vectors.
template <class T>
std::int64_t panel_width(std::int64_t col, std::int64_t n) {
  return std::min<std::int64_t>(register_tile<T>::width, round_up(n - col, native_lanes<T>));
}

/// Elements that a packed right operand of K rows and N columns takes.
template <class T>
std::int64_t packed_b_size(std::int64_t k, std::int64_t n) {
  return k * round_up(n, native_lanes<T>);
}

/// Packs rows [0, k) of one panel, `cols` (at most one tile's width) columns padded with zeros to `width`: row r at
/// `to + r * width`.
template <class T>
void pack_panel(T* to, std::int64_t width, const T* from, std::ptrdiff_t row_stride, std::ptrdiff_t col_stride,
                std::int64_t k, std::int64_t cols) {
  constexpr int n = native_lanes<T>;
  if (col_stride == 1) {
    const std::int64_t whole = cols / n * n;
    for (std::int64_t r = 0; r < k; ++r) {
      const T* const in = from + r * row_stride;
      T* const out = to + r * width;
      for (std::int64_t j = 0; j < whole; j += n) store(out + j, load<native_vec<T>>(in + j));
      if (whole != cols) store(out + whole, load_n<native_vec<T>>(in + whole, static_cast<int>(cols - whole)));
    }
    return;
  }
  if (cols != width)
    for (std::int64_t r = 0; r < k; ++r) store(to + r * width + width - n, native_vec<T>{});
  if (row_stride == 1) return transpose_block(from, col_stride, to, width, cols, k);
  for (std::int64_t r = 0; r < k; ++r)
    for (std::int64_t j = 0; j < cols; ++j) to[r * width + j] = from[r * row_stride + j * col_stride];
}

/// Packs B[K, N] of any strides into panels of one register tile's width; each panel is K rows, contiguous, and only
/// the last one is narrower (whole vectors, zero padded). `to` holds `packed_b_size<T>(k, n)` elements.
template <class T>
void pack_b(thread_pool& pool, T* to, const T* from, std::ptrdiff_t row_stride, std::ptrdiff_t col_stride,
            std::int64_t k, std::int64_t n) {
  constexpr std::int64_t full = register_tile<T>::width;
  constexpr std::int64_t rows_per_task = 256;
  const std::int64_t chunks = ceil_div(k, rows_per_task);
  pool.parallel_for(ceil_div(n, full) * chunks, [&](std::int64_t task, unsigned) {
    const std::int64_t col = task / chunks * full;
    const std::int64_t row = task % chunks * rows_per_task;
    const std::int64_t width = panel_width<T>(col, n);
    pack_panel(to + col * k + row * width, width, from + row * row_stride + col * col_stride, row_stride, col_stride,
               std::min(rows_per_task, k - row), std::min(full, n - col));
  });
}

}  // namespace kiln::kernels

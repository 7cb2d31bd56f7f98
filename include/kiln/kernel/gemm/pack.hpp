#pragma once

#include <algorithm>
#include <cstring>

#include "kiln/kernel/gemm/tile.hpp"
#include "kiln/kernel/simd/stored_floats.hpp"
#include "kiln/kernel/simd/transpose.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::kernels {

/// a / b, neither negative. Many processors divide 32-bit numbers several times faster than 64-bit ones, and a short
/// tile takes no longer than a few 64-bit divisions.
constexpr std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if ((static_cast<std::uint64_t>(a) | static_cast<std::uint64_t>(b)) >> 32 == 0) [[likely]]
    return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return quotient(a + b - 1, b); }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

/// Rows cut into blocks of at most `most` that differ by no more than one: the first `larger` have one more than
/// `least`.
struct even_blocks {
  std::int64_t blocks;
  int least;
  std::int64_t larger;

  even_blocks(std::int64_t all, int most)
      : blocks(ceil_div(all, most)), least(static_cast<int>(quotient(all, blocks))), larger(all - least * blocks) {}
  /// Calls `body(first, count)` for each block.
  template <class F> void each(F&& body) const {
    std::int64_t first = 0;
    for (std::int64_t i = 0; i < blocks; ++i) {
      const int count = least + (i < larger ? 1 : 0);
      body(first, count);
      first += count;
    }
  }
};

/// Width of the panel that begins at column `col`: a full tile, or the remaining columns rounded up to whole vectors.
template <class T> std::int64_t panel_width(std::int64_t col, std::int64_t n) {
  return std::min<std::int64_t>(register_tile<T>::width, round_up(n - col, native_lanes<T>));
}

/// Elements that a packed right operand of K rows and N columns takes.
template <class T> constexpr std::int64_t packed_b_size(std::int64_t k, std::int64_t n) {
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

/// Rows of a panel that `pack_b` packs at a time.
inline constexpr std::int64_t packed_rows_per_task = 256;

/// As `pack_panel`, for at most `packed_rows_per_task` rows at unaligned addresses.
template <class T>
[[gnu::noinline]] void pack_unaligned_panel(T* to, std::int64_t width, const std::byte* from, std::ptrdiff_t row_stride,
                                            std::ptrdiff_t col_stride, std::int64_t k, std::int64_t cols) {
  constexpr auto each = static_cast<std::ptrdiff_t>(sizeof(T));
  alignas(64) T block[packed_rows_per_task * register_tile<T>::width];
  // a line of the block is contiguous
  const bool by_columns = row_stride == 1 && col_stride != 1;
  const std::int64_t lines = by_columns ? cols : k, length = by_columns ? k : cols;
  const std::ptrdiff_t line = by_columns ? col_stride : row_stride, step = by_columns ? 1 : col_stride;
  for (std::int64_t i = 0; i < lines; ++i) {
    const std::byte* const in = from + i * line * each;
    T* const out = block + i * length;
    if (step == 1)
      std::memcpy(out, in, static_cast<std::size_t>(length) * sizeof(T));
    else
      for (std::int64_t j = 0; j < length; ++j) std::memcpy(out + j, in + j * step * each, sizeof(T));
  }
  if (by_columns)
    pack_panel(to, width, block, 1, length, k, cols);
  else
    pack_panel(to, width, block, length, 1, k, cols);
}

/// Packs B[K, N] of any strides and at any address into panels of one register tile's width; each panel is K rows,
/// contiguous, and only the last one is narrower (whole vectors, zero padded). `to` holds `packed_b_size<T>(k, n)`
/// elements, which may be narrower floats than B's.
template <class Stored, class T = Stored>
void pack_b(thread_pool& pool, Stored* to, const void* from, std::ptrdiff_t row_stride, std::ptrdiff_t col_stride,
            std::int64_t k, std::int64_t n) {
  constexpr std::int64_t full = register_tile<T>::width;
  const std::int64_t chunks = ceil_div(k, packed_rows_per_task);
  const bool aligned = reinterpret_cast<std::uintptr_t>(from) % alignof(T) == 0;
  pool.parallel_for(ceil_div(n, full) * chunks, [&](std::int64_t task, unsigned) {
    const std::int64_t col = task / chunks * full;
    const std::int64_t row = task % chunks * packed_rows_per_task;
    const std::int64_t width = panel_width<T>(col, n);
    const std::int64_t rows = std::min(packed_rows_per_task, k - row), cols = std::min(full, n - col);
    const std::byte* const in = static_cast<const std::byte*>(from) +
                                (row * row_stride + col * col_stride) * static_cast<std::ptrdiff_t>(sizeof(T));
    const auto pack = [&](T* panel) {
      if (aligned)
        pack_panel(panel, width, reinterpret_cast<const T*>(in), row_stride, col_stride, rows, cols);
      else
        pack_unaligned_panel(panel, width, in, row_stride, col_stride, rows, cols);
    };
    Stored* const panel = to + col * k + row * width;
    if constexpr (std::is_same_v<T, Stored>) {
      pack(panel);
    } else {
      alignas(64) T wide[packed_rows_per_task * full];
      pack(wide);
      for (std::int64_t i = 0; i < rows * width; i += native_lanes<T>)
        store_as(panel + i, load<native_vec<T>>(wide + i));
    }
  });
}

}  // namespace kiln::kernels

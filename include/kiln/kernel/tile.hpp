#pragma once

#include <array>
#include <utility>

#include "kiln/kernel/vector.hpp"

namespace kiln::kernels {

/// Register tile of this instruction-set level: `rows` x `vectors * native_lanes<T>` sums live in registers at once.
template <class T>
struct register_tile {
  static constexpr int vectors = native_bytes == 64 ? 4 : 2;
  static constexpr int rows = native_bytes == 16 ? 4 : 6;
  static constexpr int width = vectors * native_lanes<T>;
  /// Narrower tiles take more rows, so that enough independent sums hide the latency of an addition.
  static constexpr int rows_of(int nv) { return nv * 2 <= vectors ? 2 * rows : nv * 3 == vectors * 2 ? 8 : rows; }
};

/// The left operand's element k lies at `row + k * step`.
struct linear_step {
  std::ptrdiff_t step;
  std::ptrdiff_t operator()(std::ptrdiff_t k) const { return k * step; }
};
/// The left operand's element k lies at `row + offset[k]`: a convolution's window, read where it lies.
struct table_step {
  const std::int32_t* offset;
  std::ptrdiff_t operator()(std::ptrdiff_t k) const { return offset[k]; }
};

/// Memory that a later tile reads: for each k one cache line is fetched, `step` bytes after the one before it.
struct fetch_ahead {
  const char* at;
  std::ptrdiff_t step;
};

/// Fetches the lines that will soon be written, so that the stores don't wait for them.
template <class T>
KILN_FN void fetch_for_write(const T* at, std::int64_t count) {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t i = 0; i < count; i += line) __builtin_prefetch(at + i, 1, 3);
}

/// One register tile: C[r][j] (+)= sum over k of row[r][step(k)] * b[k * b_step + j], j < cols <= Vectors * lanes.
/// All Vectors of b must be readable. `accumulate` adds to C instead of replacing it.
template <class T, int Rows, int Vectors, class Step>
[[gnu::noinline]] void multiply_tile(std::int64_t depth, const T* const* row, Step step, const T* b,
                                     std::ptrdiff_t b_step, T* c, std::ptrdiff_t c_step, int cols, bool accumulate,
                                     fetch_ahead ahead) {
  using V = native_vec<T>;
  constexpr int width = Vectors * native_lanes<T>;
  const T* a[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) a[r] = row[r];
  V sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) sum[r][v] = V{};
  for (std::int64_t k = 0; k < depth; ++k) {
    const std::ptrdiff_t at = step(k);
    V right[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) right[v] = load<native_vec<T>>(b + v * native_lanes<T>);
    b += b_step;
    __builtin_prefetch(ahead.at, 0, 2);
    ahead.at += ahead.step;
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const V left = broadcast<native_vec<T>>(a[r][at]);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sum[r][v] = multiply_add(left, right[v], sum[r][v]);
    }
  }
  const int tail = cols - (Vectors - 1) * native_lanes<T>;
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    T* const out = c + r * c_step;
    if (cols == width) {
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        if (accumulate) sum[r][v] += load<native_vec<T>>(out + v * native_lanes<T>);
        store(out + v * native_lanes<T>, sum[r][v]);
      }
    } else {
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        const int count = v + 1 < Vectors ? native_lanes<T> : tail;
        if (accumulate) sum[r][v] += load_n<native_vec<T>>(out + v * native_lanes<T>, count);
        store_n(out + v * native_lanes<T>, sum[r][v], count);
      }
    }
  }
}

template <class T, class Step>
using tile_function = void (*)(std::int64_t, const T* const*, Step, const T*, std::ptrdiff_t, T*, std::ptrdiff_t, int,
                               bool, fetch_ahead);

template <class T, class Step, int Vectors, int... Row>
constexpr auto tile_functions(std::integer_sequence<int, Row...>) {
  return std::array<tile_function<T, Step>, sizeof...(Row)>{multiply_tile<T, Row + 1, Vectors, Step>...};
}

/// Element r - 1 computes a tile of r rows and `Vectors` vectors.
template <class T, class Step, int Vectors>
inline constexpr auto tiles_of_vectors =
    tile_functions<T, Step, Vectors>(std::make_integer_sequence<int, register_tile<T>::rows_of(Vectors)>{});

/// The tile function for a row count in [1, rows_of(vectors)] and a vector count in [1, register_tile<T>::vectors].
template <class T, class Step>
tile_function<T, Step> find_tile(int rows, int vectors) {
  const auto at = static_cast<std::size_t>(rows - 1);
  if constexpr (register_tile<T>::vectors == 4) {
    if (vectors == 4) return tiles_of_vectors<T, Step, 4>[at];
    if (vectors == 3) return tiles_of_vectors<T, Step, 3>[at];
  }
  return vectors == 2 ? tiles_of_vectors<T, Step, 2>[at] : tiles_of_vectors<T, Step, 1>[at];
}

}  // namespace kiln::kernels

#pragma once

#include <array>
#include <limits>
#include <utility>

#include "kiln/kernel/gemm/activation.hpp"
#include "kiln/kernel/simd/vector.hpp"

namespace kiln::kernels {

/// Register tile of this instruction-set level: `rows` x `vectors * native_lanes<T>` sums stay in registers.
template <class T> struct register_tile {
  static constexpr int vectors = native_bytes == 64 ? 4 : 2;
  static constexpr int rows = native_bytes == 16 ? 4 : 6;
  static constexpr int width = vectors * native_lanes<T>;
  /// Narrower tiles take more rows, so that enough independent sums hide the latency of an addition.
  static constexpr int rows_of(int nv) { return nv * 2 <= vectors ? 2 * rows : nv * 3 == vectors * 2 ? 8 : rows; }
};

/// The left operand's element k is at `row + k * step`.
struct linear_step {
  std::ptrdiff_t step;
  std::ptrdiff_t operator()(std::ptrdiff_t k) const { return k * step; }
};
/// The left operand's element k is at `row + offset[k]`: a convolution's window, read in place.
struct table_step {
  const std::int32_t* offset;
  std::ptrdiff_t operator()(std::ptrdiff_t k) const { return offset[k]; }
};

/// The address of row k of the right operand: `b_step` after the previous row, or as the step says.
template <class T, class Step>
KILN_FN const T* right_at(const T* b, std::ptrdiff_t b_step, const Step& step, std::ptrdiff_t k) {
  if constexpr (requires { step.right(k); })
    return b + step.right(k);
  else
    return b + k * b_step;
}

/// Memory that a later tile reads: each k prefetches one cache line, `step` bytes after the previous one. (Two words: a
/// third one cost short tiles 5 %, since its copy could not be forwarded from the stores before.)
struct fetch_ahead {
  const char* at;
  std::ptrdiff_t step;
};

/// Prefetches the lines that will soon be written, so that the stores do not wait for them.
template <class T> KILN_FN void fetch_for_write(const T* at, std::int64_t count) {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t i = 0; i < count; i += line) __builtin_prefetch(at + i, 1, 3);
}

/// What is applied to a tile's sums in registers before they are stored, each part optional: clamp(sum * factor +
/// offset + biases + addend). Pointers are those of the tile's first element. NaN stays. What takes `activates` applies
/// the activation, too, as the tile is stored.
template <class T> struct tile_epilogue {
  T factor = 1;
  T offset = 0;
  const T* col_bias[2] = {};
  const T* row_bias = nullptr;
  const T* addend = nullptr;
  std::ptrdiff_t addend_row = 0;
  bool clamps = false;
  bool activates = false;  ///< set by what asks for an epilogue, if it applies activations
  T low = 0, high = 0;
  activation then{};

  /// The epilogue of the columns from `col` on.
  KILN_FN tile_epilogue at_column(std::int64_t col) const {
    tile_epilogue f = *this;
    for (const T*& bias : f.col_bias)
      if (bias) bias += col;
    if (f.addend) f.addend += col;
    return f;
  }
  /// Moves on to the tile `rows` rows below.
  KILN_FN void advance(std::int64_t rows) {
    if (row_bias) row_bias += rows;
    if (addend) addend += rows * addend_row;
  }
};

/// Applies `f` to the sums of a tile of `cols` columns.
template <class T, int Rows, int Vectors>
KILN_FN void apply_epilogue(native_vec<T> (&sum)[Rows][Vectors], const tile_epilogue<T>& f, int cols) {
  using V = native_vec<T>;
  constexpr int lanes = native_lanes<T>;
  const auto read = [&](const T* from, int v) __attribute__((always_inline)) {
    const int rest = cols - v * lanes;
    return v + 1 < Vectors || rest == lanes ? load<V>(from + v * lanes) : load_n<V>(from + v * lanes, rest);
  };
  if (f.factor != 1) {
    const V factor = broadcast<V>(f.factor);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sum[r][v] *= factor;
  }
  if (f.offset != 0 || f.col_bias[0] || f.col_bias[1]) {
    V of_column[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) of_column[v] = broadcast<V>(f.offset);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      if (!f.col_bias[i]) continue;
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) of_column[v] += read(f.col_bias[i], v);
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sum[r][v] += of_column[v];
  }
  if (f.row_bias) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sum[r][v] += broadcast<V>(f.row_bias[r]);
  }
  if (f.addend) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sum[r][v] += read(f.addend + r * f.addend_row, v);
  }
  if (!f.clamps) return;
  // the second operand is kept where the comparison is unordered
  const V low = broadcast<V>(f.low), high = broadcast<V>(f.high);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) sum[r][v] = elementary::native_ops<V>::greater(low, sum[r][v]);
  if (f.high == std::numeric_limits<T>::infinity()) return;
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) sum[r][v] = elementary::native_ops<V>::lesser(high, sum[r][v]);
}

/// Prefetches the rows that a tile of `rows` rows and `cols` columns at `c` will write and add, so that it does not
/// wait for them at its end. (Prefetching a tile earlier, or during the previous tile, gained nothing.) Written rows
/// that are far apart are left to the stores: GEMMs that prefetched lines of many pages took 2 to 17 % longer. Addends
/// are prefetched always: that saved 6 to 15 %.
template <class T>
KILN_FN void fetch_rows(const T* c, std::ptrdiff_t c_row, int rows, std::int64_t cols,
                        const tile_epilogue<T>* epilogue) {
  constexpr std::int64_t line = 64 / sizeof(T), near_row = 1024 / sizeof(T);
  const T* const addend = epilogue ? epilogue->addend : nullptr;
  const bool near = c_row <= near_row;
  if (!near && !addend) return;
  for (int r = 0; r < rows; ++r) {
    if (near) fetch_for_write(c + r * c_row, cols);
    for (std::int64_t i = 0; i < cols && addend; i += line) __builtin_prefetch(addend + r * epilogue->addend_row + i);
  }
}

/// One register tile: C[r][j] (+)= sum over k of row[r][step(k)] * b[k * b_step + j], j < cols <= Vectors * lanes. All
/// Vectors of b must be readable. `accumulate` continues the sums in C, as if the previous steps had just been made;
/// `epilogue`, where it is not null, is applied to the sums. `Dense`: each k prefetches two lines, which cover all of
/// `ahead` for steps of up to 128 bytes.
template <class T, int Rows, int Vectors, class Step, bool Dense = false>
[[gnu::noinline]] void multiply_tile(std::int64_t depth, const T* const* row, Step step, const T* b,
                                     std::ptrdiff_t b_step, T* c, std::ptrdiff_t c_step, int cols, bool accumulate,
                                     fetch_ahead ahead, const tile_epilogue<T>* epilogue) {
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
  const int last = cols - (Vectors - 1) * native_lanes<T>;
  if (accumulate) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        const T* const from = c + r * c_step + v * native_lanes<T>;
        sum[r][v] = v + 1 < Vectors || cols == width ? load<V>(from) : load_n<V>(from, last);
      }
  }
  const auto add = [&](std::int64_t k) __attribute__((always_inline)) {
    const std::ptrdiff_t at = step(k);
    const T* const from = right_at(b, b_step, step, k);
    V right[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) right[v] = load<V>(from + v * native_lanes<T>);
    if constexpr (requires { step.keep(k, right); }) step.keep(k, right);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const V left = broadcast<V>(a[r][at]);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sum[r][v] = multiply_add(left, right[v], sum[r][v]);
    }
  };
  // Two steps at a time, and one prefetch for both where they share a line: where another thread runs on the same core,
  // each instruction besides the products counts (5 to 8 %).
  const bool apart = ahead.step > 32;
  std::int64_t k = 0;
  for (; k + 2 <= depth; k += 2) {
    __builtin_prefetch(ahead.at, 0, 2);
    if constexpr (Dense) {
      const char* const end = ahead.at + 2 * ahead.step;
      __builtin_prefetch(ahead.at + 64, 0, 2);
      __builtin_prefetch(end - 128, 0, 2);
      __builtin_prefetch(end - 64, 0, 2);
    } else if (apart) {
      __builtin_prefetch(ahead.at + ahead.step, 0, 2);
    }
    ahead.at += 2 * ahead.step;
    add(k);
    add(k + 1);
  }
  if (k < depth) add(k);
  if (epilogue) apply_epilogue<T, Rows, Vectors>(sum, *epilogue, cols);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    T* const out = c + r * c_step;
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      if (v + 1 < Vectors || cols == width)
        store(out + v * native_lanes<T>, sum[r][v]);
      else
        store_n(out + v * native_lanes<T>, sum[r][v], last);
    }
  }
  // In registers it would be compiled into each tile, and would spill most of the sums.
  if (epilogue && epilogue->then) activate(epilogue->then, c, c_step, Rows, cols);
}

template <class T, class Step>
using tile_function = void (*)(std::int64_t, const T* const*, Step, const T*, std::ptrdiff_t, T*, std::ptrdiff_t, int,
                               bool, fetch_ahead, const tile_epilogue<T>*);

template <class T, class Step, int Vectors, bool Dense, int... Row>
constexpr auto tile_functions(std::integer_sequence<int, Row...>) {
  return std::array<tile_function<T, Step>, sizeof...(Row)>{multiply_tile<T, Row + 1, Vectors, Step, Dense>...};
}

/// Element r - 1 computes a tile of r rows and `Vectors` vectors.
template <class T, class Step, int Vectors, bool Dense = false>
inline constexpr auto tiles_of_vectors =
    tile_functions<T, Step, Vectors, Dense>(std::make_integer_sequence<int, register_tile<T>::rows_of(Vectors)>{});

/// The tile function for a row count in [1, rows_of(vectors)] and a vector count in [1, register_tile<T>::vectors].
/// `dense`: much memory is to be prefetched, which the widest tiles with a `linear_step` can do.
template <class T, class Step> tile_function<T, Step> find_tile(int rows, int vectors, bool dense = false) {
  const auto at = static_cast<std::size_t>(rows - 1);
  if constexpr (std::is_same_v<Step, linear_step>)
    if (dense && vectors == register_tile<T>::vectors)
      return tiles_of_vectors<T, Step, register_tile<T>::vectors, true>[at];
  if constexpr (register_tile<T>::vectors == 4) {
    if (vectors == 4) return tiles_of_vectors<T, Step, 4>[at];
    if (vectors == 3) return tiles_of_vectors<T, Step, 3>[at];
  }
  return vectors == 2 ? tiles_of_vectors<T, Step, 2>[at] : tiles_of_vectors<T, Step, 1>[at];
}

}  // namespace kiln::kernels

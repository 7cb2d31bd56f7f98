#pragma once

#include "kiln/kernel/gemm/panel.hpp"

namespace kiln::kernels {

/// C[m, n] = A[m, k] * B[k, n] for each of `batch` matrices; strides count elements. C's columns are contiguous.
template <class T> struct gemm_problem {
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  std::ptrdiff_t a_row = 0, a_col = 1;
  const T* b = nullptr;  // packed by pack_b for `gemm`; of strides b_row, b_col for `gemm_unpacked`
  std::ptrdiff_t b_row = 0, b_col = 1;
  T* c = nullptr;
  std::ptrdiff_t c_row = 0;
  std::int64_t batch = 1;
  std::ptrdiff_t a_batch = 0, b_batch = 0, c_batch = 0;
  std::int64_t a_period = 0;   // when not 0, A starts again after so many matrices
  std::int64_t b_repeats = 1;  // matrices in a row that one B serves; 1 for `gemm`
  /// Offsets of C in each of `a_period` matrices, if not evenly strided; `c_batch` is then from period to period.
  const std::ptrdiff_t* c_at = nullptr;
  std::int64_t task_rows = 128;  // of `gemm`: rows of one matrix that a task takes at most
  bool matrix_unit = true;       // it may be used
  double fetch = 0;              // ns of one core to fetch an element of A there before it is split
  std::int64_t b_of(std::int64_t matrix) const { return b_repeats == 1 ? matrix : quotient(matrix, b_repeats); }

  struct matrix_place {
    std::int64_t of;  // A's matrix
    T* c;
  };
  matrix_place place(std::int64_t matrix) const {
    const std::int64_t period = a_period != 0 ? quotient(matrix, a_period) : 0, of = matrix - period * a_period;
    return {of, c + (c_at ? period * c_batch + c_at[of] : matrix * c_batch)};
  }
};

/// Bytes of a right operand.
template <class T> std::int64_t right_bytes(const gemm_problem<T>& p) {
  return p.k * p.n * static_cast<std::int64_t>(sizeof(T));
}
/// Whether the right operand exceeds a core's own caches, so that few rows stream it from beyond them.
template <class T> bool comes_from_far(const gemm_problem<T>& p) { return right_bytes(p) > 1024 * 1024; }

/// The epilogue that leaves the sums as they are.
struct no_epilogue {
  template <class T>
  void operator()(std::int64_t, std::int64_t, std::int64_t, std::int64_t, T*, std::ptrdiff_t) const {}
};

template <class T> gemm_problem<T> fold_batch(gemm_problem<T> p) {
  if (p.batch > 1 && p.a_period == 0 && p.b_batch == 0 && p.a_batch == p.m * p.a_row && p.c_batch == p.m * p.c_row) {
    p.m *= p.batch;
    p.batch = 1;
  }
  return p;
}

/// One block of a panel of the right operand, and its row stride. Where `source` is not null, the first tile of rows
/// packs the block from there.
template <class T> struct panel_block {
  const T* at;
  std::ptrdiff_t step;
  const T* source = nullptr;
  std::ptrdiff_t source_step = 0;
};

/// A right operand packed by `pack_b`.
template <class T> struct packed_right {
  const T* b;
  std::ptrdiff_t batch_stride;
  std::int64_t k;
  static constexpr bool packed = true;

  panel_block<T> block(std::int64_t matrix, std::int64_t col, std::int64_t cols, std::int64_t row, std::int64_t,
                       unsigned) const {
    const std::int64_t width = round_up(cols, native_lanes<T>);
    return {b + matrix * batch_stride + col * k + row * width, width};
  }
  /// The memory that a block will be read from.
  coming_block<T> peek(std::int64_t matrix, std::int64_t col, std::int64_t cols, std::int64_t row,
                       std::int64_t depth) const {
    const panel_block<T> at = block(matrix, col, cols, row, depth, 0);
    return {at.at, at.step, depth, at.step};
  }
};

/// The rows of the left operand for one block of its columns, and their stride.
template <class T> struct left_block {
  const T* at;
  std::ptrdiff_t step;
};

/// A left operand that is read in place.
template <class T> struct plain_left {
  const gemm_problem<T>* p;

  left_block<T> block(std::int64_t matrix, std::int64_t row0, std::int64_t, std::int64_t col, std::int64_t,
                      unsigned) const {
    return {p->a + matrix * p->a_batch + row0 * p->a_row + col * p->a_col, p->a_row};
  }
};

/// The epilogue as the tiles of one block of one panel call it: applied after the last block alone.
template <class T, class Epilogue> struct panel_epilogue {
  Epilogue& epilogue;
  bool last;
  std::int64_t row0, col0, cols;
  T* c;
  std::ptrdiff_t c_row;

  void operator()(std::int64_t first, int count) const {
    if (last) epilogue(row0 + first, std::int64_t{count}, col0, cols, c + first * c_row, c_row);
  }
  bool in_registers(std::int64_t first, std::int64_t count, tile_epilogue<T>& to) const {
    return last && applies_in_registers(epilogue, row0 + first, count, col0, cols, to);
  }
};

}  // namespace kiln::kernels

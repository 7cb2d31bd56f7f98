#pragma once

#include "kiln/kernel/gemm/operands.hpp"

namespace kiln::kernels {

/// sums[rows, cols], `step` apart, += A's columns k .. k + Depth times those rows of B, whose elements are adjacent;
/// they are written where k is 0.
template <int Depth, class T>
void add_outer_products(const gemm_problem<T>& p, const T* a, const T* b, T* sums, std::ptrdiff_t step, std::int64_t k,
                        std::int64_t cols) {
  using V = native_vec<T>;
  constexpr int n = native_lanes<T>;
  a += k * p.a_col, b += k * p.b_row;
  for (std::int64_t j = 0; j < cols; j += n) {
    const int width = static_cast<int>(std::min<std::int64_t>(n, cols - j));
    V right[Depth];
#pragma GCC unroll 8
    for (int i = 0; i < Depth; ++i) {
      const T* const at = b + i * p.b_row + j;
      // the rows that come next: the hardware prefetcher stops at the end of each part of a row
      if (Depth > 1) __builtin_prefetch(at + Depth * p.b_row, 0, 2);
      right[i] = width == n ? load<V>(at) : load_n<V>(at, width);
    }
    const T* left = a;
    T* to = sums + j;
    for (std::int64_t r = 0; r < p.m; ++r, left += p.a_row, to += step) {
      V sum = k == 0 ? V{} : load<V>(to);
#pragma GCC unroll 8
      for (int i = 0; i < Depth; ++i) sum = multiply_add(broadcast<V>(left[i * p.a_col]), right[i], sum);
      store(to, sum);
    }
  }
}

/// How `multiplied_as_few_rows` cuts a product.
template <class T> struct few_rows_part {
  static constexpr std::int64_t most_rows = 12, columns = 2048 / sizeof(T);
  /// Elements from row to row of the sums. Rows of B and of C that lie whole pages apart share few sets of L1: the sums
  /// stay out of them.
  static constexpr std::ptrdiff_t step = columns + 2 * native_lanes<T>;
  alignas(64) T sums[most_rows * step];
};

/// Multiplies few rows with a right operand that comes from far: a panel of it has a short piece of each of its rows,
/// which neither the prefetcher nor the TLB follows. False where that is not so. `epilogue` as of `gemm_unpacked`.
template <class T, class Epilogue>
bool multiplied_as_few_rows(thread_pool& pool, const gemm_problem<T>& p, Epilogue&& epilogue) {
  using part_of = few_rows_part<T>;
  const std::int64_t parts = ceil_div(p.n, part_of::columns);
  if (p.m > part_of::most_rows || p.b_col != 1 || p.k < 8 || !comes_from_far(p) ||
      p.n / part_of::columns * p.batch < static_cast<std::int64_t>(pool.size()))
    return false;
  pool.parallel_for(p.batch * parts, [&](std::int64_t task, unsigned) {
    const std::int64_t matrix = quotient(task, parts), part = task - matrix * parts;
    const auto cut = [&](std::int64_t at) {
      return at == parts ? p.n : p.n * at / parts / native_lanes<T> * native_lanes<T>;
    };
    const std::int64_t col = cut(part), cols = cut(part + 1) - col;
    const auto place = p.place(matrix);
    const T* const a = p.a + place.of * p.a_batch;
    const T* const b = p.b + p.b_of(matrix) * p.b_batch + col;
    part_of made;
    std::int64_t k = 0;
    for (; k + 8 <= p.k; k += 8) add_outer_products<8>(p, a, b, made.sums, part_of::step, k, cols);
    for (; k < p.k; ++k) add_outer_products<1>(p, a, b, made.sums, part_of::step, k, cols);
    for (std::int64_t r = 0; r < p.m; ++r)
      std::copy_n(made.sums + r * part_of::step, cols, place.c + r * p.c_row + col);
    epilogue(matrix * p.m, p.m, col, cols, place.c + col, p.c_row);
  });
  return true;
}

}  // namespace kiln::kernels

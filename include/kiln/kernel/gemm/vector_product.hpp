#pragma once

#include <algorithm>

#include "kiln/core/simd/reduce.hpp"
#include "kiln/kernel/gemm/operands.hpp"

namespace kiln::kernels {

/// y[j] = sum over k of x[k * x_step] * matrix(j, k) for j < count, where matrix(j, k) is at `j * line + k * step`, and
/// y[j] at `y + j * y_step`.
template <class T> struct vector_problem {
  std::int64_t count = 0, depth = 0;
  const T* x = nullptr;
  std::ptrdiff_t x_step = 1;
  const T* matrix = nullptr;
  std::ptrdiff_t line = 0, step = 1;
  T* y = nullptr;
  std::ptrdiff_t y_step = 1;
};

/// Products of a vector with `Lines` lines of a matrix, each of adjacent elements. A line's sum does not depend on
/// those beside it.
template <int Lines, class T> void line_products(const vector_problem<T>& p, std::int64_t first) {
  using V = native_vec<T>;
  constexpr int n = native_lanes<T>, parts = 2;
  V sum[Lines][parts] = {};
  const T* const lines = p.matrix + first * p.line;
  const auto add = [&](int part, std::int64_t k, V x, auto read) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int i = 0; i < Lines; ++i) sum[i][part] = multiply_add(x, read(lines + i * p.line + k), sum[i][part]);
  };
  const auto whole = [](const T* at) __attribute__((always_inline)) { return load<V>(at); };
  std::int64_t k = 0;
  for (; k + parts * n <= p.depth; k += parts * n)
#pragma GCC unroll 2
    for (int part = 0; part < parts; ++part) add(part, k + part * n, load<V>(p.x + k + part * n), whole);
  for (; k < p.depth; k += n) {
    const int rest = static_cast<int>(std::min<std::int64_t>(n, p.depth - k));
    add(0, k, load_n<V>(p.x + k, rest), [rest](const T* at) { return load_n<V>(at, rest); });
  }
#pragma GCC unroll 4
  for (int i = 0; i < Lines; ++i) p.y[(first + i) * p.y_step] = reduce_add(sum[i][0] + sum[i][1]);
}

/// y += x[k] * row k of the matrix for `Rows` rows from row `k`, each of adjacent elements; y is written where k is 0.
template <int Rows, class T> void add_rows(const vector_problem<T>& p, std::int64_t k) {
  using V = native_vec<T>;
  constexpr int n = native_lanes<T>;
  const T* const rows = p.matrix + k * p.step;
  V x[Rows];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) x[i] = broadcast<V>(p.x[(k + i) * p.x_step]);
  for (std::int64_t j = 0; j < p.count; j += n) {
    const int width = static_cast<int>(std::min<std::int64_t>(n, p.count - j));
    const auto read = [&](const T* at) { return width == n ? load<V>(at) : load_n<V>(at, width); };
    V sum = k == 0 ? V{} : read(p.y + j);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      // the rows that come next: the hardware prefetcher stops at the end of each part of a row
      if (Rows > 1) __builtin_prefetch(rows + (Rows + i) * p.step + j);
      sum = multiply_add(x[i], read(rows + i * p.step + j), sum);
    }
    width == n ? store(p.y + j, sum) : store_n(p.y + j, sum, width);
  }
}

/// Computes a vector product whose matrix has adjacent elements along a line, or along k.
template <class T> void vector_product(const vector_problem<T>& p) {
  std::int64_t i = 0;
  if (p.step == 1) {
    for (; i + 4 <= p.count; i += 4) line_products<4>(p, i);
    for (; i < p.count; ++i) line_products<1>(p, i);
    return;
  }
  for (; i + 8 <= p.depth; i += 8) add_rows<8>(p, i);
  for (; i < p.depth; ++i) add_rows<1>(p, i);
}

/// A product with a single row or column as one of a vector; `lies` says whether `vector_product` serves how it lies.
template <class T> struct single_line {
  vector_problem<T> of;  // of the first matrix
  bool column, lies;
  std::ptrdiff_t x_batch, matrix_batch;

  explicit single_line(const gemm_problem<T>& p) : column(p.m != 1) {
    of = column ? vector_problem<T>{p.m, p.k, p.b, p.b_row, p.a, p.a_row, p.a_col, nullptr, p.c_row}
                : vector_problem<T>{p.n, p.k, p.a, p.a_col, p.b, p.b_col, p.b_row, nullptr, 1};
    x_batch = column ? p.b_batch : p.a_batch;
    matrix_batch = column ? p.a_batch : p.b_batch;
    // short lines leave most of a vector empty; a small matrix of rows is no slower as a panel in place
    constexpr std::int64_t shortest = 2 * native_lanes<T>;
    const bool staged = of.step == 1 && of.x_step == 1 && p.k >= shortest;
    const bool by_rows = of.step != 1 && of.line == 1 && of.y_step == 1 && of.count >= shortest && p.k > 0 &&
                         (column || comes_from_far(p));
    lies = (p.m == 1 || p.n == 1) && (staged || by_rows);
  }
};

/// Multiplies where one operand is a vector whose matrix, read once, gains nothing from being packed; false where that
/// is not so. `epilogue` as of `gemm_unpacked`.
template <class T, class Epilogue>
bool multiplied_as_vector(thread_pool& pool, const gemm_problem<T>& p, Epilogue&& epilogue) {
  if (p.m != 1 && p.n != 1) return false;
  const single_line<T> all(p);
  if (!all.lies) return false;
  // Parts of about 64 KiB; rows are read 2 KiB at a time at least, or the prefetcher would lose them at each.
  constexpr std::int64_t some = 64 * 1024 / sizeof(T), run = 2048 / sizeof(T);
  const std::int64_t least = all.of.step == 1 ? 4 : run, most_parts = ceil_div(all.of.count, least);
  const std::int64_t parts = std::clamp<std::int64_t>(quotient(all.of.count * p.k, some), 1, most_parts);
  const std::int64_t each = round_up(ceil_div(all.of.count, parts), least);
  const std::int64_t tasks = ceil_div(all.of.count, each);
  pool.parallel_for(p.batch * tasks, [&](std::int64_t task, unsigned) {
    const std::int64_t matrix = quotient(task, tasks), first = (task - matrix * tasks) * each;
    const auto place = p.place(matrix);
    const std::int64_t right = p.b_of(matrix);
    vector_problem<T> part = all.of;
    part.x += (all.column ? right : place.of) * all.x_batch;
    part.matrix += (all.column ? place.of : right) * all.matrix_batch + first * part.line;
    part.count = std::min(each, part.count - first);
    part.y = place.c + first * part.y_step;
    vector_product(part);
    if (all.column)
      epilogue(matrix * p.m + first, part.count, std::int64_t{0}, std::int64_t{1}, part.y, p.c_row);
    else
      epilogue(matrix, std::int64_t{1}, first, part.count, part.y, p.c_row);
  });
  return true;
}

}  // namespace kiln::kernels

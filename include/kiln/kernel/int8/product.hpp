#pragma once

#include "kiln/kernel/int8/channels.hpp"
#include "kiln/kernel/int8/gemm.hpp"
#include "kiln/kernel/int8/groups.hpp"

namespace kiln::kernels {

/// An integer product as its problem says: one GEMM, one for each group, or one for each channel. `finish_of` and
/// `done` as `integer_gemm` has them.
template <class Machine, class FinishOf, class Done>
void integer_product(thread_pool& pool, const integer_problem& p, FinishOf&& finish_of, Done&& done,
                     std::int64_t most_rows = integer_task_rows) {
  if (p.by_channel) return integer_channels<Machine>(pool, p, finish_of, done);
  if (p.groups > 1) return integer_groups<Machine>(pool, p, finish_of, done);
  integer_gemm<Machine>(pool, p, finish_of, done, most_rows);
}

/// Takes a task's tiles to memory: the sums of row r and column c go to `sums + (r - row0) * row + c - col0`, whole
/// vectors.
struct integer_sums {
  std::int32_t* sums = nullptr;
  std::ptrdiff_t row = integer_task_cols;
  std::int64_t row0 = 0, col0 = 0;

  template <int Rows, int Vectors>
  KILN_FN void take(native_vec<std::int32_t> (&sum)[Rows][Vectors], std::int64_t at_row, std::int64_t at_col,
                    int) const {
    std::int32_t* const to = sums + (at_row - row0) * row + at_col - col0;
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) store(to + r * row + v * native_lanes<std::int32_t>, sum[r][v]);
  }
};

/// Takes tiles to where the results are: the sums of row r and column c go to `to + r * row + c`.
struct stored_sums {
  std::int32_t* to = nullptr;
  std::ptrdiff_t row = 0;

  template <int Rows, int Vectors>
  KILN_FN void take(native_vec<std::int32_t> (&sum)[Rows][Vectors], std::int64_t at_row, std::int64_t at_col,
                    int cols) const {
    constexpr int lanes = native_lanes<std::int32_t>;
    std::int32_t* const at = to + at_row * row + at_col;
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v)
        if (v + 1 < Vectors || cols == Vectors * lanes)
          store(at + r * row + v * lanes, sum[r][v]);
        else
          store_n(at + r * row + v * lanes, sum[r][v], cols - v * lanes);
  }
};

/// 32-bit elements of scratch that an integer GEMM uses whose rows have so many words: the results of a task that keeps
/// them until it is done, rows of which may have a vector more than columns, so that they are not a power of two apart;
/// then copies of its left rows.
template <class Machine> std::int64_t integer_gemm_scratch(unsigned workers, std::int64_t words) {
  return (integer_task_rows *
          (integer_task_cols + native_lanes<std::int32_t>)+multiplied_rows<Machine>::memory(most_integer_rows, words) /
          4) *
         workers;
}

/// `p` with the memory for its copies in such scratch.
template <class Machine> integer_problem with_memory(integer_problem p, std::int32_t* scratch, unsigned workers) {
  const std::int64_t bytes = multiplied_rows<Machine>::memory(most_integer_rows, p.runs.count * p.runs.words);
  std::int32_t* const copies = scratch + integer_task_rows * (integer_task_cols + native_lanes<std::int32_t>)*workers;
  if (bytes != 0 && p.matrix_unit) p.memory = reinterpret_cast<std::byte*>(copies), p.worker_memory = bytes;
  return p;
}

/// `integer_product` whose sums, less `less` of `p`, are stored task by task: `epilogue(row0, rows, col0, cols, sums,
/// sums_row)` is called once for each, from any worker, and may overwrite them; rows of sums are whole vectors.
template <class Machine, class Epilogue>
void integer_gemm_by_sums(thread_pool& pool, const integer_problem& problem, std::int32_t* scratch,
                          Epilogue&& epilogue) {
  using V = native_vec<std::int32_t>;
  const integer_problem p = with_memory<Machine>(problem, scratch, pool.size());
  constexpr int lanes = native_lanes<std::int32_t>;
  integer_product<Machine>(
      pool, p,
      [&](std::int64_t row0, std::int64_t col0, unsigned worker) {
        // narrow results lie close together, so that an epilogue may run over several rows at once; the last vector of
        // a group of several columns reaches beyond them
        const bool apart = p.groups > 1 && !p.by_channel;
        return integer_sums{scratch + worker * integer_task_rows * integer_task_cols,
                            apart ? integer_task_cols : std::min(integer_task_cols, round_up(p.n, lanes)), row0, col0};
      },
      [&](const integer_sums& made, std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols) {
        for (std::int64_t r = 0; p.less && r < rows; ++r)
          for (std::int64_t j = 0; j < cols; j += lanes) {
            const auto rest = static_cast<int>(std::min<std::int64_t>(lanes, cols - j));
            std::int32_t* const at = made.sums + r * made.row + j;
            store(at, load<V>(at) - load_n<V>(p.less + (row0 + r) % p.less_rows * p.less_row + col0 + j, rest));
          }
        epilogue(row0, rows, col0, cols, made.sums, made.row);
      });
}

}  // namespace kiln::kernels

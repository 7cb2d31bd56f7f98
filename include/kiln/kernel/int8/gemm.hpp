#pragma once

#include "kiln/kernel/gemm/gemm.hpp"
#include "kiln/kernel/int8/problem.hpp"
#include "kiln/kernel/int8/tile.hpp"

namespace kiln::kernels {

/// Rows and columns of one task of an integer GEMM: what it writes stays in L2 until it has read that again.
inline constexpr std::int64_t integer_task_rows = 56, integer_task_cols = 256;

/// The most rows of a task that reads nothing again: its right operand comes through once for more of them. Rows of a
/// matrix stay in L2 meanwhile; windows of an image overlap in another way.
inline constexpr std::int64_t most_integer_rows = 256;
inline std::int64_t integer_rows_at_once(const integer_problem& p) {
  constexpr std::int64_t words = 96 * 1024;
  return p.runs.count == 1
             ? std::clamp(words / std::max<std::int64_t>(1, p.runs.words), integer_task_rows, most_integer_rows)
             : integer_task_rows;
}

/// The addresses of rows [row0, row0 + count), by the places of the pixels that they are.
inline void find_rows(const integer_rows& rows, std::int64_t row0, std::int64_t count, const std::byte** to) {
  std::int64_t at[3], rest = row0;
  for (std::size_t d = 3; d-- > 0; rest /= rows.extent[d]) at[d] = rest % rows.extent[d];
  for (std::int64_t r = 0; r < count; ++r) {
    to[r] = rows.at + rest * rows.image + at[0] * rows.step[0] + at[1] * rows.step[1] + at[2] * rows.step[2];
    for (std::size_t d = 3; d-- > 0; at[d] = 0)
      if (++at[d] < rows.extent[d])
        break;
      else if (d == 0)
        ++rest;
  }
}

/// C[m, n] = A[m, k] * B[k, n] of 8-bit integers as `Machine` packs them, exact in 32 bits. A task is rows [row0, row0
/// + rows) and columns [col0, col0 + cols): `finish_of(row0, col0, worker)` makes what takes its tiles from registers,
/// and `done(finish, row0, rows, col0, cols)` ends it. While a panel is multiplied, the next one is prefetched.
template <class Machine, class FinishOf, class Done>
void integer_gemm(thread_pool& pool, const integer_problem& p, FinishOf&& finish_of, Done&& done,
                  std::int64_t most_rows = integer_task_rows) {
  using tile = register_tile<std::int32_t>;
  if (p.m <= 0 || p.n <= 0) return;
  const std::int64_t words = p.runs.count * p.runs.words, columns = round_up(p.n, native_lanes<std::int32_t>);
  const std::int64_t chunks = ceil_div(p.m, most_rows), chunk_rows = ceil_div(p.m, chunks);
  constexpr std::int64_t most_panels = integer_task_cols / tile::width;
  const std::int64_t panels = ceil_div(p.n, tile::width);
  const std::int64_t wanted = pool.size() == 1 ? 1 : ceil_div(4 * static_cast<std::int64_t>(pool.size()), chunks);
  const std::int64_t blocks = std::clamp(wanted, ceil_div(panels, most_panels), panels);
  const std::int64_t block_panels = ceil_div(panels, blocks);
  const std::int64_t column_tasks = ceil_div(panels, block_panels);
  pool.parallel_for(chunks * column_tasks, [&](std::int64_t task, unsigned worker) {
    const std::int64_t row0 = task / column_tasks * chunk_rows, rows = std::min(chunk_rows, p.m - row0);
    if (rows <= 0) return;
    const std::int64_t col0 = task % column_tasks * block_panels * tile::width;
    const std::int64_t cols = std::min(block_panels * tile::width, p.n - col0);
    const std::byte* row[most_integer_rows];
    find_rows(p.rows, row0, rows, row);
    const auto finish = finish_of(row0, col0, worker);
    using Finish = std::remove_const_t<decltype(finish)>;
    for (std::int64_t col = col0; col < col0 + cols; col += tile::width) {
      const std::int64_t width = panel_width<std::int32_t>(col, p.n);
      const std::int32_t* const panel = p.b + columns + col * words;
      const even_blocks blocks_of_rows(rows, tile::rows);
      constexpr std::int64_t line = 64;
      const std::int64_t steps = blocks_of_rows.blocks * words, lines = width * words * 4 / line;
      integer_runs runs = p.runs;
      runs.fetch = reinterpret_cast<const std::byte*>(panel + width * words);
      runs.fetch_step = ceil_div(lines, std::max<std::int64_t>(1, steps)) * line;
      if (lines < steps) runs.fetch_step = lines * line / steps;
      blocks_of_rows.each([&](std::int64_t first, int count) {
        find_integer_tile<Machine, Finish>(count, static_cast<int>(width / native_lanes<std::int32_t>))(
            runs, row + first, panel, width, p.shift ? p.shift + col : nullptr, finish, row0 + first, col,
            static_cast<int>(std::min<std::int64_t>(width, p.n - col)));
        runs.fetch += words * runs.fetch_step;
      });
    }
    done(finish, row0, rows, col0, cols);
  });
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

/// Elements of scratch that an integer GEMM uses which keeps a task's results until it is done; rows of them may have a
/// vector more than columns, so that they are not a power of two apart.
inline std::int64_t integer_gemm_scratch(unsigned workers) {
  return integer_task_rows * (integer_task_cols + native_lanes<std::int32_t>)*workers;
}

/// `integer_gemm` whose sums, less `less` of `p`, are stored task by task: `epilogue(row0, rows, col0, cols, sums,
/// sums_row)` is called once for each, from any worker, and may overwrite them; rows of sums are whole vectors.
template <class Machine, class Epilogue>
void integer_gemm_by_sums(thread_pool& pool, const integer_problem& p, std::int32_t* scratch, Epilogue&& epilogue) {
  using V = native_vec<std::int32_t>;
  constexpr int lanes = native_lanes<std::int32_t>;
  integer_gemm<Machine>(
      pool, p,
      [&](std::int64_t row0, std::int64_t col0, unsigned worker) {
        // narrow results lie close together, so that an epilogue may run over several rows at once
        return integer_sums{scratch + worker * integer_task_rows * integer_task_cols,
                            std::min(integer_task_cols, round_up(p.n, lanes)), row0, col0};
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

#pragma once

#include "kiln/kernel/gemm/gemm.hpp"
#include "kiln/kernel/int8/tasks.hpp"
#include "kiln/kernel/int8/tile.hpp"

namespace kiln::kernels {

/// C[m, n] = A[m, k] * B[k, n] of 8-bit integers as `Machine` packs them, exact in 32 bits. A task is rows [row0, row0
/// + rows) and columns [col0, col0 + cols): `finish_of(row0, col0, worker)` makes what takes its tiles from registers,
/// and `done(finish, row0, rows, col0, cols)` ends it. While a panel is multiplied, the next one is prefetched.
template <class Machine, class FinishOf, class Done>
void integer_gemm(thread_pool& pool, const integer_problem& p, FinishOf&& finish_of, Done&& done,
                  std::int64_t most_rows = integer_task_rows) {
  using tile = register_tile<std::int32_t>;
  if (p.m <= 0 || p.n <= 0) return;
  const std::int64_t words = p.runs.count * p.runs.words, columns = round_up(p.n, native_lanes<std::int32_t>);
  const integer_tasks tasks(p.m, ceil_div(p.n, tile::width), integer_task_cols / tile::width, pool.size(), most_rows);
  pool.parallel_for(tasks.count(), [&](std::int64_t task, unsigned worker) {
    const std::int64_t row0 = tasks.row0(task), rows = std::min(tasks.chunk_rows, p.m - row0);
    if (rows <= 0) return;
    const std::int64_t col0 = tasks.first_unit(task) * tile::width;
    const std::int64_t cols = std::min(tasks.last_unit(task) * tile::width, p.n) - col0;
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

}  // namespace kiln::kernels

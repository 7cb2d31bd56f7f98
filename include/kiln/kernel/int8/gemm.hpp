#pragma once

#include "kiln/kernel/int8/multiplied_rows.hpp"
#include "kiln/kernel/int8/tasks.hpp"

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
  const integer_tasks tasks(p.m, ceil_div(p.n, tile::width), integer_task_cols / tile::width, pool.size(), most_rows,
                            p.memory ? matrix_unit_rows : 1);
  pool.parallel_for(tasks.count(), [&](std::int64_t task, unsigned worker) {
    const std::int64_t row0 = tasks.row0(task), rows = std::min(tasks.chunk_rows, p.m - row0);
    if (rows <= 0) return;
    const std::int64_t col0 = tasks.first_unit(task) * tile::width;
    const std::int64_t cols = std::min(tasks.last_unit(task) * tile::width, p.n) - col0;
    const std::byte* row[most_integer_rows];
    find_rows(p.rows, row0, rows, row);
    multiplied_rows<Machine> left(p.runs, row, rows, p.memory ? p.memory + worker * p.worker_memory : nullptr);
    const auto finish = finish_of(row0, col0, worker);
    for (std::int64_t col = col0; col < col0 + cols; col += tile::width) {
      const std::int64_t width = panel_width<std::int32_t>(col, p.n);
      left.multiply({p.b + columns + col * words, width, std::min(width, p.n - col), p.shift ? p.shift + col : nullptr,
                     col, true},
                    finish, row0);
    }
    done(finish, row0, rows, col0, cols);
  });
}

}  // namespace kiln::kernels

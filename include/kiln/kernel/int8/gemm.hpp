#pragma once

#include "kiln/kernel/gemm/gemm.hpp"
#include "kiln/kernel/int8/problem.hpp"
#include "kiln/kernel/int8/tile.hpp"

namespace kiln::kernels {

/// Rows and columns of one task of an integer GEMM: its sums stay in L2 until the epilogue has read them.
inline constexpr std::int64_t integer_task_rows = 36, integer_task_cols = 256;

/// Elements of scratch that `integer_gemm` uses.
inline std::int64_t integer_gemm_scratch(unsigned workers) { return integer_task_rows * integer_task_cols * workers; }

/// C[m, n] = A[m, k] * B[k, n] of 8-bit integers as `Machine` packs them, exact in 32 bits. `epilogue(row0, rows, col0,
/// cols, sums, sums_row)` is called once for each task's sums, from any worker, and may overwrite them; rows of sums
/// are whole vectors.
template <class Machine, class Epilogue>
void integer_gemm(thread_pool& pool, const integer_problem& p, std::int32_t* scratch, Epilogue&& epilogue) {
  using tile = register_tile<std::int32_t>;
  if (p.m <= 0 || p.n <= 0) return;
  const std::int64_t words = integer_words<Machine>(p.k), columns = round_up(p.n, native_lanes<std::int32_t>);
  const std::int64_t chunks = ceil_div(p.m, integer_task_rows), chunk_rows = ceil_div(p.m, chunks);
  constexpr std::int64_t most_panels = integer_task_cols / tile::width;
  const std::int64_t panels = ceil_div(p.n, tile::width);
  const std::int64_t wanted = pool.size() == 1 ? 1 : ceil_div(4 * static_cast<std::int64_t>(pool.size()), chunks);
  const std::int64_t blocks = std::clamp(wanted, ceil_div(panels, most_panels), panels);
  const std::int64_t block_panels = ceil_div(panels, blocks);
  const std::int64_t column_tasks = ceil_div(panels, block_panels);
  pool.parallel_for(chunks * column_tasks, [&](std::int64_t task, unsigned worker) {
    std::int32_t* const sums = scratch + worker * integer_task_rows * integer_task_cols;
    const std::int64_t row0 = task / column_tasks * chunk_rows, rows = std::min(chunk_rows, p.m - row0);
    if (rows <= 0) return;
    const std::int64_t col0 = task % column_tasks * block_panels * tile::width;
    const std::int64_t cols = std::min(block_panels * tile::width, p.n - col0);
    const std::ptrdiff_t sums_row = round_up(cols, native_lanes<std::int32_t>);
    for (std::int64_t col = col0; col < col0 + cols; col += tile::width) {
      const std::int64_t width = panel_width<std::int32_t>(col, p.n);
      const std::int32_t* const panel = p.b + columns + col * words;
      even_blocks(rows, tile::rows).each([&](std::int64_t first, int count) {
        const std::byte* row[tile::rows];
        for (int r = 0; r < count; ++r) row[r] = p.a + (row0 + first + r) * p.a_row;
        find_integer_tile<Machine>(count, static_cast<int>(width / native_lanes<std::int32_t>))(
            words, row, panel, width, sums + first * sums_row + (col - col0), sums_row);
      });
    }
    epilogue(row0, rows, col0, cols, sums, sums_row);
  });
}

/// Adds `shift` and subtracts `less` of `p`: `put(row, col, sum)` takes one vector of the sums.
template <class Put>
void shifted_sums(const integer_problem& p, std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols,
                  const std::int32_t* sums, std::ptrdiff_t sums_row, Put&& put) {
  using V = native_vec<std::int32_t>;
  constexpr int lanes = native_lanes<std::int32_t>;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < cols; j += lanes) {
      V sum = load<V>(sums + r * sums_row + j);
      if (p.shift) sum += load<V>(p.shift + col0 + j);
      if (p.less) {
        const auto rest = static_cast<int>(std::min<std::int64_t>(lanes, cols - j));
        sum -= load_n<V>(p.less + (row0 + r) % p.less_rows * p.less_row + col0 + j, rest);
      }
      put(r, j, sum);
    }
}

}  // namespace kiln::kernels

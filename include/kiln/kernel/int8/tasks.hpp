#pragma once
#include <algorithm>

#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/kernel/int8/problem.hpp"

namespace kiln::kernels {

/// Rows and columns of one task of an integer GEMM: what it writes stays in L2 until it has read that again.
inline constexpr std::int64_t integer_task_rows = 64, integer_task_cols = 256;

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

/// How rows and columns of an integer product are divided into tasks: chunks of rows, and in each of them parts of
/// `units` that are adjacent columns, at most `most` of them together. Chunks are a multiple of so many rows.
struct integer_tasks {
  std::int64_t chunk_rows, chunks, units, each, parts;

  integer_tasks(std::int64_t m, std::int64_t all_units, std::int64_t most, std::int64_t workers,
                std::int64_t most_rows = integer_task_rows, std::int64_t multiple = 1)
      : chunk_rows(round_up(ceil_div(m, ceil_div(m, most_rows)), multiple)),
        chunks(ceil_div(m, chunk_rows)),
        units(all_units) {
    const std::int64_t wanted = workers == 1 ? 1 : ceil_div(4 * workers, chunks);
    each = ceil_div(units, std::clamp(wanted, ceil_div(units, most), units));
    parts = ceil_div(units, each);
  }
  std::int64_t count() const { return chunks * parts; }
  std::int64_t row0(std::int64_t task) const { return task / parts * chunk_rows; }
  std::int64_t first_unit(std::int64_t task) const { return task % parts * each; }
  std::int64_t last_unit(std::int64_t task) const { return std::min(first_unit(task) + each, units); }
};

}  // namespace kiln::kernels

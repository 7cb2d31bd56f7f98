#pragma once

#include "kiln/kernel/gemm/gemm.hpp"
#include "kiln/kernel/int8/tasks.hpp"
#include "kiln/kernel/int8/tile.hpp"

namespace kiln::kernels {

/// One GEMM for each group of `p`, whose right operands, packed by `pack_integers` each, lie one after the other.
/// `finish_of` and `done` as `integer_gemm` has them, columns counted through all groups.
template <class Machine, class FinishOf, class Done>
void integer_groups(thread_pool& pool, const integer_problem& p, FinishOf&& finish_of, Done&& done) {
  using tile = register_tile<std::int32_t>;
  if (p.m <= 0 || p.n <= 0) return;
  const std::int64_t of_group = p.n / p.groups, columns = round_up(of_group, native_lanes<std::int32_t>);
  const std::int64_t words = p.runs.count * p.runs.words, packed = (words + 1) * columns;
  const std::int64_t panels = ceil_div(of_group, tile::width);
  // the last vector of a group's sums may reach into the next group's, or beyond a task's last column
  constexpr std::int64_t most_cols = integer_task_cols - tile::width;
  const std::int64_t most = std::max<std::int64_t>(1, most_cols / std::min<std::int64_t>(of_group, tile::width));
  const auto column = [&](std::int64_t unit) { return unit / panels * of_group + unit % panels * tile::width; };
  const integer_tasks tasks(p.m, p.groups * panels, most, pool.size());
  pool.parallel_for(tasks.count(), [&](std::int64_t task, unsigned worker) {
    const std::int64_t row0 = tasks.row0(task), rows = std::min(tasks.chunk_rows, p.m - row0);
    if (rows <= 0) return;
    const std::int64_t first_unit = tasks.first_unit(task), last_unit = tasks.last_unit(task);
    const std::int64_t col0 = column(first_unit), cols = column(last_unit) - col0;
    const std::byte *row[integer_task_rows], *of_tile[tile::rows];
    find_rows(p.rows, row0, rows, row);
    const auto finish = finish_of(row0, col0, worker);
    using Finish = std::remove_const_t<decltype(finish)>;
    for (std::int64_t unit = first_unit; unit < last_unit; ++unit) {
      const std::int64_t group = unit / panels, inside = unit % panels * tile::width, col = column(unit);
      const std::int64_t width = panel_width<std::int32_t>(inside, of_group);
      const std::int32_t* const panel = p.b + group * packed + columns + inside * words;
      even_blocks(rows, tile::rows).each([&](std::int64_t first, int count) {
        for (int r = 0; r < count; ++r) of_tile[r] = row[first + r] + group * p.group;
        find_integer_tile<Machine, Finish>(count, static_cast<int>(width / native_lanes<std::int32_t>))(
            p.runs, of_tile, panel, p.shift ? p.shift + col : nullptr, finish, row0 + first, col,
            static_cast<int>(std::min<std::int64_t>(width, of_group - inside)));
      });
    }
    done(finish, row0, rows, col0, cols);
  });
}

/// How many neighboring groups a grouped product computes as one, whose other weights are zero: the number by which
/// its instructions for one row, sums and epilogues, are fewest.
template <class Machine>
constexpr std::int64_t joined_groups(std::int64_t groups, std::int64_t inputs, std::int64_t outputs,
                                     std::int64_t taps) {
  constexpr std::int64_t epilogue = 12;  // instructions for a vector of sums
  std::int64_t best = 1, least = 0;
  for (std::int64_t joined = 1; joined <= groups && joined * outputs <= register_tile<std::int32_t>::width; ++joined) {
    if (groups % joined != 0) continue;
    const std::int64_t vectors = ceil_div(joined * outputs, native_lanes<std::int32_t>);
    const std::int64_t work = groups / joined * vectors * (taps * integer_words<Machine>(joined * inputs) + epilogue);
    if (joined == 1 || work < least) best = joined, least = work;
  }
  return best;
}

}  // namespace kiln::kernels

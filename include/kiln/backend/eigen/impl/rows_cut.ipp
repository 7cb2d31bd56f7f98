#include <algorithm>
#include <new>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/backend/eigen/impl/row_walk.hpp"
#include "kiln/core/huge_page.hpp"
#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/runtime/step_team.hpp"

namespace kiln::eigen {
namespace {

constexpr unsigned most_pieces = 64;
constexpr std::size_t cursor_bytes = padded_bytes(sizeof(block_cursor));

// Rows in pieces of whole blocks, the last one of a row aside. Some rows are a group, as many as are still in the
// threads' caches when a level reads them again. Each piece of a group has a cursor, streams and row buffers in
// scratch.
struct pieces {
  std::int64_t piece, of_row, group;
  std::size_t bytes;

  pieces(const tile_program& p, const row_loops& loops, unsigned threads) {
    constexpr std::int64_t unit = 256, least = 8192, cached = 1 << 20;
    const std::int64_t wanted = std::min(threads, most_pieces), row = loops.row();
    piece = kernels::round_up(std::max(kernels::ceil_div(row, wanted), least), unit);
    of_row = kernels::ceil_div(row, piece);
    bytes = cursor_bytes + streams_bytes + padded_bytes(p.blocks()->scratch_bytes(piece, 0));
    std::int64_t of_piece = static_cast<std::int64_t>(bytes);
    for (const auto& o : loops.operand)
      of_piece += o.folded[0] == 0 ? 0 : piece * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t each = kernels::ceil_div(threads, of_row);  // rows that keep all threads busy
    group = std::min(loops.rows(), std::max<std::int64_t>(1, cached * threads / (of_piece * of_row) / each) * each);
  }
};

}  // namespace

bool cuts_rows(const tile_program& p, const row_loops& loops, unsigned threads) {
  constexpr std::int64_t shortest = 1 << 14;
  const std::int64_t rows = loops.rows(), each = threads;
  return threads > 1 && p.reduces() && p.blocks() && p.blocks()->folds_join() && loops.folded.size() == 1 &&
         loops.row() >= shortest && rows < 4 * each && rows % each != 0;
}

std::size_t cut_rows_scratch_bytes(const tile_program& p, const row_loops& loops, unsigned threads) {
  const pieces cut(p, loops, threads);
  return static_cast<std::size_t>(cut.group * cut.of_row) * cut.bytes;
}

void run_cut_rows(const tile_program& p, const launch& l, const row_loops& loops) {
  const pieces cut(p, loops, l.pool->size());
  const std::size_t count = loops.operand.size();
  const auto scratch_of = [&](std::int64_t k) { return l.scratch.data() + static_cast<std::size_t>(k) * cut.bytes; };
  const auto cursor_of = [&](std::int64_t k) { return std::launder(reinterpret_cast<block_cursor*>(scratch_of(k))); };
  const auto streams_of = [&](std::int64_t k) {
    return reinterpret_cast<tile_program::stream*>(scratch_of(k) + cursor_bytes);
  };
  // Piece k of the rows from `first_row` on.
  const auto begin = [&](std::int64_t first_row, std::int64_t k) {
    constexpr std::int64_t distance = 4096;  // see `row_walk`
    auto& cursor =
        *new (scratch_of(k)) block_cursor(*p.blocks(), scratch_of(k) + cursor_bytes + streams_bytes, cut.piece, 0);
    const std::int64_t row = first_row + k / cut.of_row, from = k % cut.of_row * cut.piece;
    for (std::size_t s = 0; s < count; ++s) {
      const tensor& t = operand_of(l, s);
      const ints& kept = loops.operand[s].kept;
      const std::int64_t inner = kept.empty() ? 1 : loops.kept.back(), step = loops.operand[s].folded[0];
      const std::int64_t first = outer_offset(loops, s, row / inner) + (kept.empty() ? 0 : row % inner * kept.back());
      std::byte* const at = t.data + (first + from * step) * static_cast<std::int64_t>(size_of(t.type));
      new (streams_of(k) + s) tile_program::stream{at, step};
      if (step == 1 && !(l.unread && s >= l.in.size())) cursor.fetch_ahead(s, distance);
    }
    cursor.begin_row(streams_of(k));
  };
  // A step is a level of a group; each thread has the same pieces at all levels.
  const std::int64_t levels = p.levels(), groups = kernels::ceil_div(loops.rows(), cut.group);
  const auto first_row = [&](std::int64_t step) { return step / levels * cut.group; };
  const auto pieces_of = [&](std::int64_t step) {
    return std::min(cut.group, loops.rows() - first_row(step)) * cut.of_row;
  };
  const auto parts = static_cast<unsigned>(
      std::min<std::int64_t>({l.pool->size(), pieces_of(0), std::int64_t{step_team::most_parts}}));
  step_team::run(
      *l.pool, parts, groups * levels,
      [&](std::int64_t step, unsigned part) {
        const std::int64_t all = pieces_of(step), level = step % levels;
        for (std::int64_t k = part * all / parts; k < (part + 1) * all / parts; ++k) {
          if (level == 0)
            begin(first_row(step), k);
          else
            cursor_of(k)->end_level(streams_of(k), static_cast<int>(level) - 1, loops.row());
          const std::int64_t from = k % cut.of_row * cut.piece;
          cursor_of(k)->run(streams_of(k), static_cast<int>(level), 0, std::min(cut.piece, loops.row() - from),
                            l.unread);
        }
        if (l.unread) kiln_eigen_isa()->blocks()->fence();
      },
      [&](std::int64_t step) {
        const auto level = static_cast<int>(step % levels);
        for (std::int64_t first = 0; first < pieces_of(step); first += cut.of_row) {
          stack_list<block_cursor*, most_pieces> of_row;
          for (std::int64_t k = first; k < first + cut.of_row; ++k) of_row.push_back(cursor_of(k));
          block_cursor::join_folds({of_row.begin(), of_row.size()}, level);
          // one piece writes what its row has of one element
          if (level + 1 == levels) of_row[0]->end_level(streams_of(first), level, loops.row());
        }
      });
}

}  // namespace kiln::eigen

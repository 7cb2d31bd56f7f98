#include <algorithm>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/backend/eigen/impl/rows/row_walk.hpp"
#include "kiln/core/huge_page.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

// How the strips of a worker find an operand.
enum class operand_form : std::uint8_t {
  rows,    // contiguous rows, which are transposed into scratch or out of it
  common,  // one row for all, of which each element is repeated in scratch
  by_row,  // one element a row, read and written as it lies
  other
};

operand_form form_of_operand(const tile_program& p, const row_loops& loops, std::size_t k, dtype type) {
  const bool result = k >= p.parameters();
  if (!(result ? p.full_result(k - p.parameters()) : p.full_parameter(k))) return operand_form::by_row;
  const std::int64_t along = loops.operand[k].folded[0], across = loops.operand[k].kept.back();
  if (type != dtype::f32) return operand_form::other;
  if (along == 1 && across >= loops.row()) return operand_form::rows;
  return !result && across == 0 && along > 0 ? operand_form::common : operand_form::other;
}

std::size_t operand_bytes(const row_loops& loops) {
  constexpr std::size_t slack = 64;  // see `spread_function`
  return padded_bytes(static_cast<std::size_t>(loops.row() * kiln_eigen_isa()->blocks()->lanes[1]) * sizeof(float)) +
         slack;
}

}  // namespace

bool are_short_rows(const tile_program& p, const row_loops& loops, std::span<const tensor> in,
                    std::span<const tensor> out) {
  constexpr std::int64_t longest = 24;
  if (!p.blocks() || !p.reduces() || loops.folded.size() != 1 || loops.row() < 2 || loops.row() > longest ||
      loops.kept.empty() || loops.kept.back() < kiln_eigen_isa()->blocks()->lanes[1])
    return false;
  for (std::size_t k = 0; k < loops.operand.size(); ++k)
    if (form_of_operand(p, loops, k, (k < in.size() ? in[k] : out[k - in.size()]).type) == operand_form::other)
      return false;
  return true;
}

std::size_t short_rows_scratch_bytes(const tile_program& p, const row_loops& loops) {
  return p.blocks()->scratch_bytes(loops.row(), kiln_eigen_isa()->blocks()->lanes[1]) + streams_bytes +
         loops.operand.size() * operand_bytes(loops);
}

void run_short_rows(const tile_program& p, const launch& l, const row_loops& loops) {
  const isa_table& isa = *kiln_eigen_isa();
  const std::int64_t lanes = isa.blocks()->lanes[1], narrow = isa.blocks()->lanes[0];
  const std::int64_t row = loops.row(), inner = loops.kept.back(), outer = loops.rows() / inner;
  const std::int64_t tasks = std::min(tasks_of_rows(outer, inner, row, lanes, l.pool->size()), inner / lanes);
  const std::size_t each = short_rows_scratch_bytes(p, loops), count = loops.operand.size();
  const bool twice = !in_place(l);
  const auto body = [&](std::int64_t task, unsigned worker) {
    std::byte* scratch = l.scratch.data() + worker * each;
    auto* const streams = reinterpret_cast<tile_program::stream*>(scratch);
    scratch += streams_bytes;
    const std::int64_t first = task % tasks * inner / tasks, last = (task % tasks + 1) * inner / tasks;
    operand_form form[row_loops::most_operands];
    std::byte* start[row_loops::most_operands];  // of row 0
    std::byte* room[row_loops::most_operands];
    row_loops strip;
    strip.kept = {lanes};
    strip.folded = {row};
    for (std::size_t k = 0; k < count; ++k, scratch += operand_bytes(loops)) {
      const tensor& t = operand_of(l, k);
      const auto width = static_cast<std::int64_t>(size_of(t.type));
      form[k] = form_of_operand(p, loops, k, t.type);
      start[k] = t.data + outer_offset(loops, k, task / tasks) * width;
      room[k] = scratch;
      const bool by_row = form[k] == operand_form::by_row;
      strip.operand.push_back({{1}, {by_row ? 0 : lanes}});
      new (streams + k) tile_program::stream{room[k], by_row ? loops.operand[k].kept.back() : 1};
      if (form[k] == operand_form::common)
        kiln_eigen_typed_tiles()->spread(sizeof(float))(start[k], loops.operand[k].folded[0], room[k], row, lanes);
    }
    block_cursor cursor(*p.blocks(), scratch, row, lanes);
    for (std::int64_t from = first; from < last;) {
      // A rest does some of the rows before it again where these are still there.
      if (twice && last - from < lanes) from = std::max(first, last - lanes);
      const std::int64_t rows = last - from >= lanes ? lanes : std::min(narrow, last - from);
      const auto transpose = [&](std::size_t k, bool in) {
        const std::int64_t step = loops.operand[k].kept.back();
        auto* const at = reinterpret_cast<float*>(start[k]) + from * step;
        auto* const to = reinterpret_cast<float*>(room[k]);
        const kernels::image_layout by_rows{true, step}, by_lanes{};
        if (in)
          isa.convert_images(*l.pool, 1, row, rows, at, by_rows, to, by_lanes);
        else
          isa.convert_images(*l.pool, 1, row, rows, to, by_lanes, at, by_rows);
      };
      for (std::size_t k = 0; k < count; ++k) {
        const tensor& t = operand_of(l, k);
        if (form[k] == operand_form::rows) strip.operand[k].folded[0] = rows;
        if (form[k] == operand_form::rows && k < l.in.size()) transpose(k, true);
        if (form[k] == operand_form::by_row)
          streams[k].at = start[k] + from * streams[k].step * static_cast<std::int64_t>(size_of(t.type));
      }
      cursor.strip(streams, rows, strip);
      for (std::size_t k = l.in.size(); k < count; ++k)
        if (form[k] == operand_form::rows) transpose(k, false);
      from += rows;
    }
  };
  if (outer * tasks == 1)
    body(0, 0);
  else
    l.pool->parallel_for(outer * tasks, body);
}

}  // namespace kiln::eigen

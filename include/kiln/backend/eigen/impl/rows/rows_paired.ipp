#include <algorithm>

#include "kiln/backend/eigen/impl/rows/row_pairs.hpp"
#include "kiln/backend/eigen/impl/rows/row_walk.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

// Where a row is cut: at whole lines, none of the parts short.
constexpr std::int64_t cut = 64, shortest = 4 * cut, longest_whole = 4096;

// The rows and the elements within one that come before element `e` of all.
struct place {
  std::int64_t row, from;
};
place place_of(std::int64_t e, std::int64_t row) {
  place at{e / row, e % row / cut * cut};
  if (row <= longest_whole || at.from < shortest) return {at.row, 0};
  return row - at.from < shortest ? place{at.row + 1, 0} : at;
}

class pair_walk {
 public:
  pair_walk(const launch& l, const row_loops& loops, const void* op, bool swaps)
      : l_(l), loops_(loops), operand_{swaps ? 1U : 0U, swaps ? 0U : 1U, 2} {
    constexpr std::int64_t distance = 4096, cached = 1 << 18;
    p_.op = op;
    p_.swapped = swaps;
    p_.repeats = loops.operand[operand_[1]].folded[0] == 0;
    p_.past_cache = l.unread;
    const std::int64_t bytes = loops.rows() * loops.row() * static_cast<std::int64_t>(size_of(l.in[0].type));
    p_.ahead = bytes > cached ? distance : 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const ints& kept = loops.operand[operand_[k]].kept;
      width_[k] = static_cast<std::int64_t>(size_of(operand_of(l, operand_[k]).type));
      step_[k] = kept.empty() ? 0 : kept.back() * width_[k];
    }
  }

  // Elements [from, to) of rows [row, row + rows), which differ in the innermost kept dim alone.
  void run(pair_function f, std::int64_t row, std::int64_t rows, std::int64_t from, std::int64_t to) const {
    const std::int64_t inner = loops_.kept.empty() ? 1 : loops_.kept.back();
    std::byte* at[3];
    for (std::size_t k = 0; k < 3; ++k)
      at[k] =
          operand_of(l_, operand_[k]).data + row % inner * step_[k] +
          (outer_offset(loops_, operand_[k], row / inner) + from * loops_.operand[operand_[k]].folded[0]) * width_[k];
    kernels::row_pairs p = p_;
    p.a = at[0], p.b = at[1], p.to = at[2];
    p.a_step = step_[0], p.b_step = step_[1], p.to_step = step_[2];
    p.rows = rows;
    p.row = to - from;
    f(p);
  }
  void run(pair_function f, place first, place last) const {
    const std::int64_t row = loops_.row(), inner = loops_.kept.empty() ? 1 : loops_.kept.back();
    if (first.from != 0) {
      const bool ends = first.row == last.row;
      run(f, first.row, 1, first.from, ends ? last.from : row);
      if (ends) return;
      first = {first.row + 1, 0};
    }
    while (first.row < last.row) {
      const std::int64_t rows = std::min(last.row - first.row, inner - first.row % inner);
      run(f, first.row, rows, 0, row);
      first.row += rows;
    }
    if (last.from != 0) run(f, last.row, 1, 0, last.from);
  }

 private:
  const launch& l_;
  const row_loops& loops_;
  std::size_t operand_[3];           // by their roles: both operands in the loops' order, the result
  std::int64_t width_[3], step_[3];  // bytes of an element, from row to row
  kernels::row_pairs p_;
};

}  // namespace

pair_loop find_pair_loop(const module_graph& body) {
  if (body.size() != 3) return {};
  const auto& last = body[2];
  if (last.kind != instruction_kind::op || last.inputs.size() != 2 || body.outputs.size() != 1) return {};
  for (std::uint32_t k = 0; k < 2; ++k)
    if (body[k].kind != instruction_kind::parameter || last.inputs[k].instruction != k) return {};
  const dtype type = body[0].results[0].type;
  if (body[1].results[0].type != type) return {};
  return {last.op, kiln_eigen_typed_tiles()->pair(last.op.table().index, type)};
}

bool run_pairs(const pair_loop& of, const launch& l, const row_loops& loops, std::int64_t grain) {
  constexpr std::int64_t least_bytes = 64;
  const std::int64_t row = loops.row(), all = loops.rows() * row;
  if (loops.folded.size() != 1 || row * static_cast<std::int64_t>(size_of(l.in[0].type)) < least_bytes) return false;
  std::int64_t step[3];
  for (std::size_t k = 0; k < 3; ++k)
    if (step[k] = loops.operand[k].folded[0]; step[k] != 1 && (k == 2 || step[k] != 0)) return false;
  if (step[0] == 0 && step[1] == 0) return false;
  if (all == 0) return true;
  const pair_walk walk(l, loops, of.op.data(), step[0] == 0);
  const std::int64_t tasks = balanced((all + grain - 1) / grain, l.pool->size());
  const auto body = [&](std::int64_t task, unsigned) {
    walk.run(of.run, place_of(task * all / tasks, row), place_of((task + 1) * all / tasks, row));
  };
  if (tasks == 1)
    body(0, 0);
  else
    l.pool->parallel_for(tasks, body);
  return true;
}

}  // namespace kiln::eigen

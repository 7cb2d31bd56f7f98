#pragma once
#include "kiln/fixed/records.hpp"

namespace kiln::fixed {

/// How a body with reductions runs row by row. Stage s is one loop over the row; a reduction of stage s is known behind
/// it, and the values of stage s + 1 may read it.
struct reduce_plan {
  struct value {
    bool row = false;         ///< one element a row
    std::uint32_t stage = 0;  ///< full: the loop that computes it; row: the loop it stands before
    bool saved = false;       ///< a later loop reads it
    std::int64_t slot = 0;    ///< which row of the scratch memory holds it
  };
  small_vector<value> values;
  ints full{};
  inline_vector<bool, max_rank> reduced{};
  std::uint32_t stages = 1;
  std::int64_t slots = 0;

  constexpr std::int64_t row_elements() const {
    std::int64_t n = 1;
    for (std::size_t d = 0; d < full.size(); ++d)
      if (reduced[d]) n *= full[d];
    return n;
  }
};

constexpr bool is_reduction(const node& n) { return n.op >= 0 && n.kind == op_kind::reduction; }

constexpr reduce_plan plan_reduce(std::span<const node> nodes) {
  reduce_plan p;
  for (const node& n : nodes) {
    if (!is_reduction(n)) continue;
    p.full = nodes[n.inputs[0]].lens;
    for (std::size_t d = 0; d < p.full.size(); ++d) p.reduced.push_back(p.full[d] != n.lens[d]);
    break;
  }
  for (const node& n : nodes) {
    reduce_plan::value v;
    v.row = !(n.lens == p.full);
    if (n.op >= 0) {
      for (std::uint32_t i : n.inputs) {
        const reduce_plan::value& from = p.values[i];
        const std::uint32_t stage = from.stage;
        if (v.stage < stage) v.stage = stage;
      }
      if (is_reduction(n)) {
        ++v.stage;
        v.row = true;
        if (p.stages < v.stage) p.stages = v.stage;
      }
      if (p.stages < v.stage + 1 && !v.row) p.stages = v.stage + 1;
    }
    p.values.push_back(v);
  }
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    if (nodes[k].op < 0) continue;
    for (std::uint32_t i : nodes[k].inputs) {
      reduce_plan::value& from = p.values[i];
      const std::uint32_t read_at = is_reduction(nodes[k]) ? p.values[k].stage - 1 : p.values[k].stage;
      if (nodes[i].op >= 0 && nodes[i].kind != op_kind::view && !from.row && from.stage < read_at) from.saved = true;
    }
  }
  for (reduce_plan::value& v : p.values)
    if (v.saved) v.slot = p.slots++;
  return p;
}

}  // namespace kiln::fixed

#pragma once
#include "kiln/graph/rewriter.hpp"

namespace kiln::detail {

/// Puts instruction i over other operands, whose results have other float types, in the place of the old one: results
/// are converted back to their types, and `converted_back` marks the conversions, by instruction.
template <class R>
constexpr void recompute(R& r, std::uint32_t i, small_vector<value_id> inputs, const shapes& results,
                         small_vector<std::uint8_t>& converted_back) {
  const auto op = r[i].op;
  const text name = r[i].name;
  const shapes before = r[i].results;
  const value_id made = r.add_with_shapes(op, std::move(inputs), results, name.view());
  for (std::uint32_t k = 0; k < before.size(); ++k) {
    value_id by{made.instruction, k};
    if (!(results[k].type == before[k].type)) {
      by = r.add(op::convert{before[k].type}, {by});
      converted_back.resize(by.instruction + 1, 0);
      converted_back[by.instruction] = 1;
    }
    r.replace({i, k}, by);
  }
}

}  // namespace kiln::detail

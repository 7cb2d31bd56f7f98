#pragma once
#include <algorithm>
#include <vector>

#include "kiln/graph/operation.hpp"
#include "kiln/runtime/derived_data.hpp"
#include "kiln/runtime/impl/plan/plan.hpp"

namespace kiln::detail {

/// Whether a shape rule that accepts these operands may refuse them once its symbols and theirs have values: some
/// values are tried.
inline bool rule_is_open(const operation& op, const std::vector<shape>& operands) {
  small_vector<dimension> symbols;
  op.symbols(symbols);
  for (const shape& o : operands)
    for (const dimension d : o.lens) collect_symbols(d, symbols);
  if (symbols.empty()) return false;
  constexpr std::int64_t one = 1, many = std::int64_t{1} << 40;
  const auto refuses = [&](auto&& value_of) {
    bindings values;
    for (std::size_t s = 0; s < symbols.size(); ++s)
      if (!values.find(symbols[s]))
        values.bind(symbols[s], std::clamp(value_of(s), symbols[s].min(), symbols[s].max()));
    try {
      small_vector<shape> tried;
      for (const shape& o : operands) {
        tried.push_back(o);
        for (dimension& d : tried.back().lens) d = values.substitute(d);
      }
      operation bound = op;
      bound.substitute(values);
      return !bound.shape_rule({tried.data(), tried.size()});
    } catch (const error&) {  // products of what is tried may not fit into 64 bits
      return true;
    }
  };
  for (const std::int64_t all : {std::int64_t{0}, one, many})
    if (refuses([&](std::size_t) { return all; })) return true;
  for (const std::int64_t odd : {std::int64_t{0}, many})
    for (std::size_t other = 0; other < symbols.size(); ++other)
      if (refuses([&](std::size_t s) { return symbols[s] == symbols[other] ? odd : one; })) return true;
  return false;
}

/// Leaves to the run what the shape rule of a kernel's op cannot decide yet. A saved program has what was found of it.
inline void leave_rule(plan& p, const module_graph& graph, const basic_instruction<operation>& ins,
                       derived_data* derived, std::string where) {
  if (ins.kind != instruction_kind::op) return;
  if (ins.op.kind() != op_kind::generic && ins.op.kind() != op_kind::contraction) return;
  std::vector<shape> in;
  for (const value_id v : ins.inputs) in.push_back(graph.shape_of(v));
  const auto open = [&] { return rule_is_open(ins.op, in); };
  if (!(derived ? derived->decide(2, open) != 0 : open())) return;
  open_rule r{ins.op, {}, std::move(where)};
  for (const shape& s : in) {
    r.operands.push_back({s.type, {}});
    for (const dimension d : s.lens) r.operands.back().lens.push_back(p.sizes.slot(d));
  }
  p.rules.push_back(std::move(r));
}

}  // namespace kiln::detail

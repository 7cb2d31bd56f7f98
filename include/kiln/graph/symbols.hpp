#pragma once
#include "kiln/graph/module.hpp"

namespace kiln {

/// Appends every symbol that an instruction's results, attributes and symbolic constants (its own or its operands')
/// mention.
inline void collect_symbols(const module_graph& m, std::uint32_t i, small_vector<dimension>& out) {
  const auto add_literal = [&](const auto& ins) {
    if (ins.kind != instruction_kind::literal || !ins.constant.has_symbols()) return;
    for (const dimension d : *ins.constant.data().template values<dimension>()) collect_symbols(d, out);
  };
  const auto& ins = m[i];
  for (const shape& s : ins.results)
    for (const dimension d : s.lens) collect_symbols(d, out);
  if (ins.kind == instruction_kind::op) ins.op.symbols(out);
  add_literal(ins);
  for (const value_id v : ins.inputs) add_literal(m.producer(v));
}

/// The symbols that a dynamic instruction binds: those of its results and attributes that no operand's dims mention.
inline small_vector<dimension> bound_symbols(const module_graph& m, std::uint32_t i) {
  small_vector<dimension> known, mentioned, out;
  for (const value_id v : m[i].inputs)
    for (const dimension d : m.shape_of(v).lens) collect_symbols(d, known);
  for (const shape& s : m[i].results)
    for (const dimension d : s.lens) collect_symbols(d, mentioned);
  m[i].op.symbols(mentioned);
  for (const dimension d : mentioned) {
    bool old = false;
    for (const dimension k : known) old = old || k == d;
    if (!old) out.push_back(d), known.push_back(d);
  }
  return out;
}

}  // namespace kiln

#pragma once
#include <optional>
#include <unordered_map>

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

/// Which instruction of a module binds a symbol: the first that may. Symbols that parameters' dims mention are bound
/// from outside.
class symbol_binders {
 public:
  explicit symbol_binders(const module_graph& m) {
    bool any = false;
    for (std::uint32_t i = 0; i < m.size() && !any; ++i) any = m.binds_symbols(i);
    if (!any) return;
    small_vector<dimension> given;
    for (const value_id v : m.parameters())
      for (const dimension d : m.shape_of(v).lens) collect_symbols(d, given);
    for (const dimension d : given) at_.emplace(d.raw(), outside);
    for (std::uint32_t i = 0; i < m.size(); ++i)
      if (m.binds_symbols(i))
        for (const dimension d : bound_symbols(m, i)) at_.emplace(d.raw(), i);
  }
  bool empty() const { return at_.empty(); }
  std::optional<std::uint32_t> find(dimension symbol) const {
    const auto found = at_.find(symbol.raw());
    if (found == at_.end() || found->second == outside) return std::nullopt;
    return found->second;
  }

 private:
  static constexpr std::uint32_t outside = 0xffff'ffff;
  std::unordered_map<std::int64_t, std::uint32_t> at_;
};

}  // namespace kiln

#include "kiln/graph/module.hpp"

#include "kiln/graph/symbols.hpp"

namespace kiln::detail {

void throw_fault(const fault& f, std::string_view op, std::string_view label) {
  error e(f);
  e.at_op(op).at_instruction(label);
  throw e;
}

small_vector<small_vector<std::uint32_t>> binders_read(const module_graph& m) {
  const symbol_binders binders(m);
  small_vector<small_vector<std::uint32_t>> out;
  if (binders.empty()) return out;
  out.resize(m.size());
  small_vector<dimension> mentioned;
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    if (m[i].kind == instruction_kind::parameter) continue;
    mentioned.clear();
    collect_symbols(m, i, mentioned);
    for (const dimension d : mentioned)
      if (const auto b = binders.find(d); b && *b != i) out[i].push_back(*b);
  }
  return out;
}

}  // namespace kiln::detail

#pragma once
#include <algorithm>
#include <vector>

#include "kiln/graph/operation.hpp"

namespace kiln::detail {

/// Whether a shape rule that accepts these operands may refuse them once its symbols and theirs have values: some
/// values are tried.
template <class Typed>
bool rule_is_open(const operation& op, const std::vector<Typed>& operands) {
  small_vector<dimension> symbols;
  op.symbols(symbols);
  for (const Typed& o : operands)
    for (const dimension d : o.type.lens) collect_symbols(d, symbols);
  if (symbols.empty()) return false;
  constexpr std::int64_t one = 1, many = std::int64_t{1} << 40;
  const auto refuses = [&](auto&& value_of) {
    bindings values;
    for (std::size_t s = 0; s < symbols.size(); ++s)
      if (!values.find(symbols[s]))
        values.bind(symbols[s], std::clamp(value_of(s), symbols[s].min(), symbols[s].max()));
    try {
      small_vector<shape> tried;
      for (const Typed& o : operands) {
        tried.push_back(o.type);
        for (dimension& d : tried.back().lens) d = values.substitute(d);
      }
      operation bound = op;
      bound.substitute(values);
      return !bound.shape_rule({tried.data(), tried.size()});
    } catch (const error&) {  // products of what is tried may not fit into 64 bits
      return true;
    }
  };
  if (refuses([&](std::size_t) { return one; }) || refuses([&](std::size_t) { return many; })) return true;
  for (std::size_t other = 0; other < symbols.size(); ++other)
    if (refuses([&](std::size_t s) { return symbols[s] == symbols[other] ? many : one; })) return true;
  return false;
}

}  // namespace kiln::detail

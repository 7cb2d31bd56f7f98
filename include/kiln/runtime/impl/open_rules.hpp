#pragma once
#include <vector>

#include "kiln/graph/operation.hpp"

namespace kiln::detail {

/// Whether a shape rule that accepts these operands may refuse them once their open extents have values: it depends on
/// symbols itself, or some values are refused where others are not.
template <class Typed>
bool rule_is_open(const operation& op, const std::vector<Typed>& operands) {
  small_vector<shape> given;
  bool known = true;
  for (const Typed& o : operands) {
    given.push_back(o.type);
    known = known && o.type.is_constant();
  }
  if (known) return false;
  small_vector<dimension> symbols;
  op.symbols(symbols);
  if (!symbols.empty()) return true;
  const auto refuses = [&](auto&& extent_of) {
    small_vector<shape> tried = given;
    for (std::size_t k = 0; k < tried.size(); ++k)
      for (dimension& d : tried[k].lens)
        if (!d.is_constant()) d = extent_of(k);
    return !op.shape_rule({tried.data(), tried.size()});
  };
  constexpr std::int64_t one = 1, many = 1009;
  if (refuses([](std::size_t) { return one; }) || refuses([](std::size_t) { return many; })) return true;
  for (std::size_t other = 0; other < given.size(); ++other)
    if (refuses([&](std::size_t k) { return k == other ? many : one; })) return true;
  return false;
}

}  // namespace kiln::detail

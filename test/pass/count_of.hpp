#pragma once
#include <string_view>

namespace kiln::test {

/// How many instructions of the main module that outputs depend on are this op.
template <class Program> std::size_t count_of(const Program& p, std::string_view op) {
  std::size_t n = 0;
  const auto& m = p.main();
  for (const std::uint32_t i : m.order()) n += m[i].kind == instruction_kind::op && m[i].op.name() == op;
  return n;
}

}  // namespace kiln::test

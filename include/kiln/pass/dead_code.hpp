#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

/// Drops instructions that no output needs and renumbers the others in execution order; parameters stay.
template <class Program>
constexpr pass_note dead_code(Program& p) {
  pass_note note("dead_code");
  for_each_module(p, [&](auto& m) {
    const std::size_t before = m.size();
    m.compact();
    note.count("drop", static_cast<std::uint32_t>(before - m.size()));
  });
  return note;
}

}  // namespace kiln

#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

namespace detail {
/// Makes what binds symbols that nobody mentions, and has no results that anybody reads, nothing that `order` keeps.
void release_unread(program& p);
}  // namespace detail

/// Drops instructions that no output needs and renumbers the others in execution order; parameters stay.
template <class Program> constexpr pass_note dead_code(Program& p) {
  pass_note note("dead_code");
  if constexpr (std::is_same_v<Program, program>) detail::release_unread(p);
  for_each_module(p, [&](auto& m) {
    const std::size_t before = m.size();
    m.compact();
    note.count("drop", static_cast<std::uint32_t>(before - m.size()));
  });
  return note;
}

}  // namespace kiln

#pragma once
#include <cstdint>
#include <vector>

#include "kiln/text/impl/guidance/character_class.hpp"

namespace kiln::language::guidance {

/// A recursive transition network over bytes (Woods 1970): rules are automata whose edges read bytes, nothing, or what
/// another rule reads. Without rules that read rules it is a Thompson automaton.
struct automaton {
  using node = std::uint32_t;
  struct edge {
    std::uint8_t low, high;
    node to;
  };
  struct call {
    std::uint32_t rule;
    node to;
  };
  struct place {
    std::vector<edge> edges;
    std::vector<node> free;  // reached without reading
    std::vector<call> calls;
  };
  struct rule {
    node begin, end;
  };

  std::vector<place> places;
  std::vector<rule> rules;   // the first is the language
  std::vector<char> is_end;  // by place: whether it is the end of its rule

  /// Throws `error` (`limit`) where the expression or schema has become too large.
  node add_place();
  /// A rule whose end no place reaches yet.
  std::uint32_t add_rule();
  void add_free(node from, node to) { places[from].free.push_back(to); }
  /// A path from place to place for the UTF-8 bytes of each character; surrogates are none.
  void add_characters(node from, node to, const code_ranges& characters);
  /// Removes what leads to no text, and fills `is_end`; nothing is added after it. Throws `error` (`invalid_argument`)
  /// where there is no text at all.
  void finish();
};

}  // namespace kiln::language::guidance

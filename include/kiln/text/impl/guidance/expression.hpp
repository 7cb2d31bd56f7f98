#pragma once
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "kiln/text/impl/guidance/automaton.hpp"

namespace kiln::language::guidance {

constexpr std::uint32_t unbounded = std::numeric_limits<std::uint32_t>::max();

/// A regular expression.
struct expression {
  enum class kind : std::uint8_t { characters, sequence, choice, repeat, both, other, shortest, run };
  kind what = kind::sequence;
  code_ranges characters;  ///< of one character
  /// An empty sequence matches the empty text. A repeat has one part; so has `other`, which matches the texts that it
  /// does not, and `shortest`, which matches those of its texts of which no beginning is one. `both` matches what all
  /// parts do, `run` some parts that follow each other.
  std::vector<expression> parts;
  std::uint32_t least = 1, most = 1;  ///< of a repeat
};

/// What a pattern must match.
enum class extent : std::uint8_t {
  whole,  ///< the text
  part    ///< a part of the text, as JSON schema has it: `^` and `$` bind it to the ends, and classes are what ECMA-262
          ///< and Python both take
};

/// ASCII letters with their other case; other characters stay alone.
code_ranges in_any_case(code_ranges characters);

/// Parses a pattern in UTF-8. Throws `error` with the position.
expression parse_expression(std::string_view pattern, extent e);

/// How a text's characters are written.
enum class spelling : std::uint8_t {
  plain,
  json_string  ///< as between the quotes of a JSON string: `\"`, `\\` and controls escaped, nothing else
};

/// Adds an expression's paths from a place on and gives the place after them.
automaton::node add_expression(automaton& a, automaton::node from, const expression& e, spelling s);

/// Adds a path for one character of a class.
void add_spelled(automaton& a, automaton::node from, automaton::node to, const code_ranges& characters, spelling s);

}  // namespace kiln::language::guidance

#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/guidance/automaton.hpp"
#include "kiln/text/impl/guidance/expression.hpp"
#include "kiln/text/impl/guidance/token_trie.hpp"

namespace kiln::language::guidance {

/// A part of a rule or terminal of a Lark grammar.
struct lark_item {
  enum class kind : std::uint8_t { match, name, schema, special, sequence, choice, repeat, both, other, shortest };
  kind what = kind::sequence;
  expression match{};                 ///< of a string, regular expression or range of characters
  std::string text{};                 ///< a name, a JSON schema, or a special token between < and >
  std::vector<lark_item> parts{};     ///< a repeat has one
  std::uint32_t least = 1, most = 1;  ///< of a repeat
  std::size_t line = 0;
};

/// A grammar in the dialect of llguidance: rules have names in lower case, terminals in upper case.
struct lark_grammar {
  std::map<std::string, lark_item, std::less<>> rules, terminals;
  std::vector<std::string> order;  ///< of the rules
  std::vector<lark_item> ignored;  ///< what may stand before each terminal of a rule
};

/// An error of a grammar, with its line.
[[noreturn]] void lark_fault(errc code, std::size_t line, const std::string& what);
/// Whether a name is a terminal's: its first letter is upper case.
bool is_terminal_name(std::string_view name);

/// The characters of a string, one after the other.
expression lark_text(std::string_view text, bool any_case, std::size_t line);
/// What `%regex {…}` says: `substring_chars`, `substring_words` (runs of letters and digits, and of spaces) or
/// `substring_chunks`, a list: parts of a text that follow each other, or none.
expression lark_substring(std::string_view json, std::size_t line);

lark_grammar parse_lark(std::string_view text);
/// The terminals that `%import common.NAME` gives, as a grammar.
std::string_view common_terminals();

/// Rules that begin with themselves are rewritten as rules that repeat, with the same texts.
void remove_left_recursion(lark_grammar& g);
/// Throws `unsupported` where a rule may call itself before it has read anything; `names` are the rules'.
void check_reads_first(const automaton& a, std::span<const std::string> names);

/// Texts of the rule `start`, with the special tokens of a vocabulary. Throws `error` with the line: `malformed`,
/// `not_found`, `unsupported`, `limit`.
automaton automaton_of_lark(std::string_view grammar, const token_trie& vocabulary);

}  // namespace kiln::language::guidance

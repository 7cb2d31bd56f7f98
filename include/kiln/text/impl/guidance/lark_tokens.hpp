#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kiln::language::guidance {

struct lark_token {
  enum class kind : std::uint8_t { name, string, regex, number, directive, json, special, mark, end };
  kind what = kind::end;
  std::string text;   ///< a string's characters, a regular expression between its slashes, others as written
  std::string flags;  ///< after a string or regular expression
  std::size_t line = 0;
  bool is_first = false;  ///< in its line
};

/// The tokens of a Lark grammar, the last of kind `end`. Errors: those of `parse_lark`.
std::vector<lark_token> lark_tokens(std::string_view text);

}  // namespace kiln::language::guidance

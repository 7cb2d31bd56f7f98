#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/text/jinja/template.hpp"

namespace kiln::language::jinja {

/// Line and column from 1; columns count code points.
struct position {
  std::uint32_t line = 1, column = 1;
};

enum class token_kind : std::uint8_t {
  data,
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  op,
  end
};

struct lexeme {
  token_kind kind = token_kind::end;
  std::string text;  ///< data and strings without escapes, names, operators and digits as they stand
  position at;
};

/// Splits a template into tokens; throws `error` with the place.
std::vector<lexeme> lex(std::string_view source, const std::string& name, const syntax&);

/// How a token is called in messages.
std::string describe(const lexeme&);

/// Throws `error` (malformed) at a place of a template.
[[noreturn]] void fail_at(const std::string& name, position at, const std::string& message);
/// The words for a place of a template.
std::string place(const std::string& name, position at);

}  // namespace kiln::language::jinja

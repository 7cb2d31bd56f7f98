#pragma once
#include "kiln/text/impl/jinja/ast.hpp"
#include "kiln/text/impl/jinja/interpreter.hpp"

namespace kiln::language::jinja {

/// Python's arithmetic; throws `error` for types without it, division by zero and results beyond 64 bits.
value calculate(interpreter&, arithmetic, const value& left, const value& right);
value negate(const value&);
bool compare(interpreter&, comparing, const value& left, const value& right);
bool contains(interpreter&, const value& whole, const value& part);
/// `of[begin:end:step]`; absent bounds are None.
value slice(interpreter&, const value& of, const value& begin, const value& end, const value& step);
/// Python's `text % values`.
std::string format_percent(interpreter&, const std::string& text, const value& values);
/// Python's `text.format(...)`.
std::string format_braces(interpreter&, const std::string& text, const arguments&);
/// JSON to values and back.
value from_json(heap&, std::string_view json, std::string_view what);
struct json_style {
  std::string indent, item_separator = ", ", key_separator = ": ";
  bool is_indented = false, ascii_only = false, sorts_keys = false;
};
std::string to_json(const value&, const json_style&, int depth = 0);

}  // namespace kiln::language::jinja

#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::language::jinja {

/// Python's str.replace; a negative count replaces all. Throws `error` (limit) for a text of more than `most_text`
/// bytes.
std::string replaced(std::string_view text, std::string_view old, std::string_view by, std::int64_t count);
/// Python's str.splitlines.
std::vector<std::string> lines_of(std::string_view text, bool keep_ends);
/// &, <, >, ' and " as HTML's entities.
std::string escape_html(std::string_view text);

}  // namespace kiln::language::jinja

#pragma once
#include <string>
#include <string_view>

namespace kiln::language::jinja {

/// Appends the text of a Python string literal's inside; returns what is wrong with it, or nothing.
std::string unescape(std::string_view inside, std::string& to);

}  // namespace kiln::language::jinja

#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace kiln::aot {

/// The keywords of C++20.
const std::set<std::string, std::less<>>& cpp_words();

/// Names that <cmath>, <cstdint>, <cstdio> and <cstdlib> declare outside of std, and their macros.
const std::set<std::string, std::less<>>& c_names();

/// A name of a file for a comment, which it does not end.
std::string one_line(std::string_view s);

/// An identifier like a name; capitals with an underscore, as macros are spelled, of which no list is complete, become
/// small letters.
std::string identifier_of(std::string_view wanted);

/// Whether the letters make an identifier that is not reserved to the compiler; keywords do, too.
bool is_identifier(std::string_view s);

}  // namespace kiln::aot

#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace kiln::fixed {

/// The keywords of C++20.
const std::set<std::string, std::less<>>& cpp_words();

/// Whether the letters make an identifier that is not reserved to the compiler; keywords do, too.
bool is_identifier(std::string_view s);

}  // namespace kiln::fixed

#pragma once
#include <cstddef>
#include <string_view>

namespace kiln {

/// How many letters must be put in, taken out or replaced to make one word of the other (Levenshtein 1966).
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace kiln

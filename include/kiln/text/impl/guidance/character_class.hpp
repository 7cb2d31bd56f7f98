#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace kiln::language::guidance {

/// Characters as ranges of code points, both ends included; sorted and apart where a function returns them.
using code_ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

constexpr std::uint32_t last_code_point = 0x10FFFF;

/// Sorts ranges and joins those that touch.
code_ranges joined(code_ranges ranges);
/// The other code points.
code_ranges negated(const code_ranges& ranges);
code_ranges intersection(const code_ranges& a, const code_ranges& b);

/// Python's `\d`: decimal digits (Nd).
const code_ranges& digits();
/// Python's `\w`: letters, numbers and `_`.
const code_ranges& word_characters();
/// Python's `\s`: Unicode's white space and U+001C to U+001F.
const code_ranges& white_space();

}  // namespace kiln::language::guidance

#pragma once

#include <array>
#include <string_view>

#include "kiln/text/impl/vocabulary.hpp"

namespace kiln::language::detail {

/// The byte that a spelling of the form `<0x0A>` stands for; -1 for others.
int byte_of_spelling(std::string_view spelling);
/// The tokens `<0x00>` to `<0xFF>`; false where one is missing.
bool find_byte_tokens(const vocabulary& words, std::array<token, 256>& out);

}  // namespace kiln::language::detail

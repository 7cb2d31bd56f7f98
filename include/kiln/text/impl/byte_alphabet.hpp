#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kiln::language::detail {

/// Appends each byte of a text as the printable character that GPT-2's vocabulary has for it (Radford et al. 2019,
/// `bytes_to_unicode`).
void append_byte_characters(std::string& out, std::string_view bytes);
/// The bytes that such characters stand for; nothing where one of them stands for none.
std::optional<std::string> bytes_of_characters(std::string_view characters);

}  // namespace kiln::language::detail

#pragma once

#include <unicode/utf8.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::language::detail {

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view metaspace_mark = "\xE2\x96\x81";         // U+2581, which SentencePiece writes for a space

/// The character at `at`, which moves after it; below 0 where the bytes are none, and `at` then moves after the
/// maximal part of one.
inline std::int32_t next_character(std::string_view text, std::size_t& at) {
  std::int32_t c;
  U8_NEXT(text.data(), at, text.size(), c);
  return c;
}

/// Bytes of the character that begins with this byte, in valid text.
constexpr std::size_t character_bytes(char lead) {
  const auto b = static_cast<unsigned char>(lead);
  return b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

inline void append_character(std::string& out, std::int32_t c) {
  char bytes[4];
  std::size_t n = 0;
  U8_APPEND_UNSAFE(bytes, n, c);
  out.append(bytes, n);
}

/// Whether all characters of a text are below 128.
bool is_ascii(std::string_view text);
/// Whether a text is UTF-8.
bool is_valid_utf8(std::string_view text);
/// Appends a text with U+FFFD for each maximal part that is no character.
void append_valid(std::string& out, std::string_view text);

}  // namespace kiln::language::detail

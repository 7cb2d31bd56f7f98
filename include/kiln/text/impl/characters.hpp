#pragma once

#include <unicode/uchar.h>

#include <cstdint>
#include <string_view>

#include "kiln/text/impl/utf8.hpp"

// Questions about characters, as Rust's standard library and Hugging Face's tokenizers answer them.

namespace kiln::language::detail {

inline std::int32_t character_at(std::string_view text, std::size_t at) { return next_character(text, at); }
/// Bytes of the character in front of `at`, in valid text.
inline std::size_t bytes_before(std::string_view text, std::size_t at) {
  std::size_t n = 1;
  while (n < 4 && n < at && (static_cast<unsigned char>(text[at - n]) & 0xC0) == 0x80) ++n;
  return n;
}
inline std::int32_t character_before(std::string_view text, std::size_t at) {
  return character_at(text, at - bytes_before(text, at));
}

inline bool in_categories(std::int32_t c, std::uint32_t mask) { return (U_GET_GC_MASK(c) & mask) != 0; }

inline bool is_whitespace(std::int32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return u_isUWhiteSpace(c) != 0;
}
inline bool is_numeric(std::int32_t c) { return in_categories(c, U_GC_N_MASK); }
inline bool is_punctuation(std::int32_t c) {
  if (c < 0x80)
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  return in_categories(c, U_GC_P_MASK);
}
/// What `\w` matches.
inline bool is_word(std::int32_t c) {
  return u_isUAlphabetic(c) != 0 || in_categories(c, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) || c == 0x200C ||
         c == 0x200D;
}

}  // namespace kiln::language::detail

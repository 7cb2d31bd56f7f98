#pragma once

#include <string>
#include <string_view>

namespace kiln::language::detail {

/// The bytes that base64 (RFC 4648) stands for; false where the text is none.
inline bool decode_base64(std::string_view text, std::string& out) {
  unsigned bits = 0, have = 0;
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  for (const char c : text) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t digit = digits.find(c);
    if (digit == std::string_view::npos) return false;
    bits = (bits << 6 | static_cast<unsigned>(digit)) & 0xFFFFFFu;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out += static_cast<char>(bits >> have & 0xFF);
  }
  return true;
}

}  // namespace kiln::language::detail

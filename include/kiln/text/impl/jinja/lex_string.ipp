#include "kiln/text/impl/jinja/lex_string.hpp"

#include <cstdint>

#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 32);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : 99;
}

// Reads up to `most` digits of a base.
std::uint32_t number(std::string_view text, std::size_t& at, int base, std::size_t most) {
  std::uint32_t n = 0;
  const std::size_t end = at + most;
  while (at < text.size() && at < end && digit(text[at]) < base)
    n = n * static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(digit(text[at++]));
  return n;
}

bool is_lead(std::uint32_t p) { return p >= 0xD800 && p < 0xDC00; }

}  // namespace

std::string unescape(std::string_view inside, std::string& to) {
  constexpr std::string_view names = "abfnrtv\\'\"", meant = "\a\b\f\n\r\t\v\\'\"";
  for (std::size_t at = 0; at < inside.size();) {
    if (inside[at] != '\\' || at + 1 == inside.size()) {
      to += inside[at++];
      continue;
    }
    const char c = inside[at + 1];
    if (const std::size_t i = names.find(c); i != names.npos) {
      to += meant[i];
      at += 2;
    } else if (c == '\n') {
      at += 2;
    } else if (c >= '0' && c <= '7') {
      append_point(to, number(inside, ++at, 8, 3));
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      const std::size_t begin = at += 2;
      std::uint32_t point = number(inside, at, 16, digits);
      if (at - begin != digits)
        return "expected " + std::to_string(digits) + " hexadecimal digits after '\\" + c + "', found " +
               std::to_string(at - begin);
      if (is_lead(point) && inside.substr(at).starts_with("\\u")) {  // two halves of one character
        std::size_t second = at + 2;
        const std::uint32_t low = number(inside, second, 16, 4);
        if (second == at + 6 && low >= 0xDC00 && low < 0xE000) {
          point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
          at = second;
        }
      }
      if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return "an escape of a string names no character";
      append_point(to, point);
    } else {
      to += '\\';
      ++at;
    }
  }
  return {};
}

}  // namespace kiln::language::jinja

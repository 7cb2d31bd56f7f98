#include <cstring>

#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::detail {

namespace {

constexpr std::uint64_t high_bits = 0x8080808080808080u;

// The first byte from `at` on that begins no ASCII character.
std::size_t behind_ascii(std::string_view text, std::size_t at) {
  for (std::uint64_t word; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & high_bits) != 0) break;
  }
  while (at < text.size() && static_cast<signed char>(text[at]) >= 0) ++at;
  return at;
}

}  // namespace

bool is_ascii(std::string_view text) { return behind_ascii(text, 0) == text.size(); }

bool is_valid_utf8(std::string_view text) {
  for (std::size_t at = behind_ascii(text, 0); at < text.size();) {
    if (next_character(text, at) < 0) return false;
    if (at < text.size() && static_cast<signed char>(text[at]) >= 0) at = behind_ascii(text, at);
  }
  return true;
}

void append_valid(std::string& out, std::string_view text) {
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (next_character(text, at) >= 0) continue;
    out.append(text, done, begin - done);
    out += replacement_character;
    done = at;
  }
  out.append(text, done, text.size() - done);
}

}  // namespace kiln::language::detail

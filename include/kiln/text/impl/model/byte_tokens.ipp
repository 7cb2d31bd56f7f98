#include "kiln/text/impl/model/byte_tokens.hpp"

#include <charconv>

namespace kiln::language::detail {

int byte_of_spelling(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return -1;
  int byte = -1;
  const auto [end, fault] = std::from_chars(spelling.data() + 3, spelling.data() + 5, byte, 16);
  return fault == std::errc() && end == spelling.data() + 5 && byte >= 0 ? byte : -1;
}

bool find_byte_tokens(const vocabulary& words, std::array<token, 256>& out) {
  constexpr char digits[] = "0123456789ABCDEF";
  bool all = true;
  for (unsigned b = 0; b < 256; ++b) {
    const char spelling[] = {'<', '0', 'x', digits[b >> 4], digits[b & 15], '>'};
    out[b] = words.find({spelling, sizeof spelling});
    all = all && out[b] >= 0;
  }
  return all;
}

}  // namespace kiln::language::detail

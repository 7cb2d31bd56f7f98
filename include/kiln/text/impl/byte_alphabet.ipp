#include <array>

#include "kiln/text/impl/byte_alphabet.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::detail {

namespace {

constexpr int highest = 0x144;

// Printable bytes stand for themselves, the others in order for the characters from U+0100 on.
struct alphabet {
  std::array<std::int32_t, 256> character{};
  std::array<std::int16_t, highest> byte{};

  constexpr alphabet() {
    byte.fill(-1);
    std::int32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const std::int32_t c = printable ? b : next++;
      character[static_cast<std::size_t>(b)] = c;
      byte[static_cast<std::size_t>(c)] = static_cast<std::int16_t>(b);
    }
  }
};
constexpr alphabet letters;
static_assert(letters.character[255] == 255 && letters.character[' '] == 0x120 && letters.character[0xAD] == 0x143);

}  // namespace

void append_byte_characters(std::string& out, std::string_view bytes) {
  for (const char b : bytes) append_character(out, letters.character[static_cast<unsigned char>(b)]);
}

std::optional<std::string> bytes_of_characters(std::string_view characters) {
  std::string out;
  out.reserve(characters.size());
  for (std::size_t at = 0; at < characters.size();) {
    const std::int32_t c = next_character(characters, at);
    if (c < 0 || c >= highest || letters.byte[static_cast<std::size_t>(c)] < 0) return std::nullopt;
    out += static_cast<char>(letters.byte[static_cast<std::size_t>(c)]);
  }
  return out;
}

}  // namespace kiln::language::detail

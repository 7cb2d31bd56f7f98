#include <unicode/brkiter.h>
#include <unicode/utext.h>

#include <cstring>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/characters.hpp"
#include "kiln/text/impl/normalize/charsmap.hpp"
#include "kiln/text/impl/normalize/normalizers.hpp"

namespace kiln::language::detail {

charsmap::charsmap(std::string_view blob) {
  if (blob.empty()) return;
  std::uint32_t bytes = 0;
  if (blob.size() >= sizeof bytes) std::memcpy(&bytes, blob.data(), sizeof bytes);
  if (blob.size() < sizeof bytes || bytes % 4 != 0 || bytes == 0 || bytes > blob.size() - sizeof bytes)
    raise(errc::malformed, "precompiled_charsmap: expected a trie of " + std::to_string(bytes) + " bytes, found " +
                               std::to_string(blob.size()) + " bytes in all");
  units_.resize(bytes / 4);
  std::memcpy(units_.data(), blob.data() + sizeof bytes, bytes);
  texts_ = blob.substr(sizeof bytes + bytes);
}

// The units of darts-clone: a label, an offset to the children, whether a value hangs at it, and the value itself.
std::pair<std::size_t, std::string_view> charsmap::find(std::string_view text, bool first) const {
  std::pair<std::size_t, std::string_view> best{0, {}};
  if (units_.empty()) return best;
  const auto offset = [](std::uint32_t unit) -> std::size_t { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
  std::size_t at = offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size()) break;
    const std::uint32_t unit = units_[at];
    if ((unit & ((1u << 31) | 0xFFu)) != byte) break;
    at ^= offset(unit);
    if (at >= units_.size()) break;
    if ((unit >> 8 & 1) == 0) continue;
    const std::size_t place = units_[at] & 0x7FFFFFFFu;
    if (place < texts_.size()) {
      best = {i + 1, std::string_view(texts_).substr(place, ::strnlen(texts_.data() + place, texts_.size() - place))};
      if (first) break;
    }
  }
  return best;
}

namespace {

class precompiled final : public normalizer {
 public:
  explicit precompiled(std::string_view blob) : rules_(blob) {}

  void apply(std::string& text, std::string& spare, regex_memory&) const override {
    if (rules_.empty()) return;
    spare.clear();
    // ASCII characters are graphemes, but for "\r\n"
    if (is_ascii(text) && text.find('\r') == std::string::npos) {
      for (std::size_t i = 0; i < text.size(); ++i) append(std::string_view(text).substr(i, 1), spare);
    } else {
      each_grapheme(text, [&](std::string_view grapheme) { append_grapheme(grapheme, spare); });
    }
    text.swap(spare);
  }

 private:
  void append(std::string_view part, std::string& out) const {
    const auto [bytes, becomes] = rules_.shortest(part);
    out += bytes == 0 ? part : becomes;
  }
  // As spm_precompiled does: a short grapheme that begins with a key becomes the key's text as a whole.
  void append_grapheme(std::string_view grapheme, std::string& out) const {
    constexpr std::size_t longest_whole = 5;
    if (grapheme.size() <= longest_whole) {
      if (const auto [bytes, becomes] = rules_.shortest(grapheme); bytes != 0) {
        out += becomes;
        return;
      }
    }
    for (std::size_t at = 0; at < grapheme.size(); at += character_bytes(grapheme[at]))
      append(grapheme.substr(at, character_bytes(grapheme[at])), out);
  }

  template <class F> static void each_grapheme(std::string_view text, F&& each) {
    UErrorCode fault = U_ZERO_ERROR;
    // opening one reads rules; a copy for each text is cheaper
    static const std::unique_ptr<icu::BreakIterator> original(
        icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), fault));
    if (original == nullptr) raise(errc::internal, std::string("ICU finds no graphemes: ") + u_errorName(fault));
    const std::unique_ptr<icu::BreakIterator> breaks(original->clone());
    UText whole = UTEXT_INITIALIZER;
    utext_openUTF8(&whole, text.data(), static_cast<std::int64_t>(text.size()), &fault);
    breaks->setText(&whole, fault);
    utext_close(&whole);
    if (U_FAILURE(fault)) raise(errc::internal, std::string("ICU finds no graphemes: ") + u_errorName(fault));
    std::int32_t begin = breaks->first();
    for (std::int32_t end = breaks->next(); end != icu::BreakIterator::DONE; begin = end, end = breaks->next())
      each(text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
  }

  charsmap rules_;
};

}  // namespace

std::unique_ptr<normalizer> make_precompiled(std::string_view blob) { return std::make_unique<precompiled>(blob); }

}  // namespace kiln::language::detail

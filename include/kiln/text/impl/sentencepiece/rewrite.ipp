#include "kiln/text/impl/double_array.hpp"
#include "kiln/text/impl/normalize/charsmap.hpp"
#include "kiln/text/impl/sentencepiece/parts.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::detail {

namespace {

// As SentencePiece's normalizer.cc does it.
class rewrite final : public splitter {
 public:
  rewrite(const sentencepiece_file::normalizer_spec& spec, bool as_suffix, bool only_at_start,
          const defined_symbols& symbols)
      : rules_(spec.charsmap),
        symbols_(std::vector<double_array::entry>(symbols.begin(), symbols.end())),
        space_(spec.escape_whitespaces ? metaspace_mark : std::string_view(" ")),
        adds_prefix_(spec.add_dummy_prefix && !as_suffix),
        adds_suffix_(spec.add_dummy_prefix && as_suffix),
        only_at_start_(only_at_start),
        removes_spaces_(spec.remove_extra_whitespaces) {}

  void apply(split_text& text, regex_memory&) const override {
    const bool from_start = text.from_start;
    text.rewrite_each([&](std::string_view part, bool is_first, std::string& out) {
      append(part, adds_prefix_ && (!only_at_start_ || (is_first && from_start)), out);
    });
  }

 private:
  // The first bytes of a text that are normalized at once, and what becomes of them.
  std::pair<std::size_t, std::string_view> first_of(std::string_view text) const {
    if (const std::size_t bytes = symbols_.longest_prefix(text).first; bytes != 0)
      return {bytes, text.substr(0, bytes)};
    if (const auto found = rules_.longest(text); found.first != 0) return found;
    const std::size_t bytes = character_bytes(text[0]);
    return {bytes, text.substr(0, bytes)};
  }

  void append(std::string_view text, bool prefix, std::string& out) const {
    while (removes_spaces_ && !text.empty()) {
      const auto [bytes, becomes] = first_of(text);
      if (becomes != " ") break;
      text.remove_prefix(bytes);
    }
    if (text.empty()) return;
    const std::size_t begin = out.size();
    if (prefix) out += space_;
    bool after_space = removes_spaces_;
    while (!text.empty()) {
      auto [bytes, becomes] = first_of(text);
      text.remove_prefix(bytes);
      while (after_space && becomes.starts_with(' ')) becomes.remove_prefix(1);
      if (becomes.empty()) continue;
      for (const char byte : becomes)
        if (byte == ' ')
          out += space_;
        else
          out += byte;
      after_space = removes_spaces_ && becomes.ends_with(' ');
    }
    while (removes_spaces_ && out.size() > begin && out.ends_with(space_)) out.resize(out.size() - space_.size());
    if (adds_suffix_) out += space_;
  }

  charsmap rules_;
  double_array symbols_;
  std::string_view space_;
  bool adds_prefix_, adds_suffix_, only_at_start_, removes_spaces_;
};

}  // namespace

std::unique_ptr<splitter> make_sentencepiece_rewrite(const sentencepiece_file::normalizer_spec& spec,
                                                     bool whitespace_as_suffix, bool only_at_start,
                                                     const defined_symbols& symbols) {
  return std::make_unique<rewrite>(spec, whitespace_as_suffix, only_at_start, symbols);
}

}  // namespace kiln::language::detail

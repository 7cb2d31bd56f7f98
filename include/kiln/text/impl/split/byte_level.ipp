#include <optional>

#include "kiln/text/impl/byte_alphabet.hpp"
#include "kiln/text/impl/split/splitters.hpp"

namespace kiln::language::detail {

namespace {

// Radford et al. 2019, encoder.py.
constexpr std::string_view gpt2_pattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

class byte_level final : public splitter {
 public:
  byte_level(bool add_prefix_space, bool use_regex, bool to_characters)
      : add_prefix_space_(add_prefix_space), to_characters_(to_characters) {
    if (use_regex) words_ = make_split(regex(gpt2_pattern), split_behavior::isolated, false);
  }

  void apply(split_text& text, regex_memory& memory) const override {
    if (add_prefix_space_)
      text.rewrite_each([](std::string_view word, bool, std::string& out) {
        if (!word.starts_with(' ')) out += ' ';
        out += word;
      });
    if (words_) words_->apply(text, memory);
    if (to_characters_)
      text.rewrite_each([](std::string_view word, bool, std::string& out) { append_byte_characters(out, word); });
  }

 private:
  bool add_prefix_space_, to_characters_;
  std::unique_ptr<splitter> words_;
};

}  // namespace

std::unique_ptr<splitter> make_byte_level(bool add_prefix_space, bool use_regex, bool to_characters) {
  return std::make_unique<byte_level>(add_prefix_space, use_regex, to_characters);
}

}  // namespace kiln::language::detail

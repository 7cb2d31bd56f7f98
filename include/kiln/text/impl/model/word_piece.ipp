#include "kiln/text/impl/model/word_piece.hpp"

#include "kiln/core/error.hpp"
#include "kiln/text/impl/double_array.hpp"
#include "kiln/text/impl/scratch.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::detail {

namespace {

void append_unknown(std::string_view word, token unknown, tokens& out) {
  if (unknown < 0)
    raise(errc::invalid_argument,
          "the text has \"" + std::string(word) + "\", which the vocabulary lacks, and there is no unknown token");
  out.push_back(unknown);
}

class word_piece final : public model {
 public:
  word_piece(const vocabulary& words, token unknown, const std::string& prefix, std::size_t most_characters)
      : unknown_(unknown), most_characters_(most_characters) {
    std::vector<double_array::entry> initial, continuing;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto id = static_cast<token>(i);
      const std::string_view spelling = words[id];
      if (!spelling.empty()) initial.emplace_back(spelling, id);
      if (spelling.size() > prefix.size() && spelling.starts_with(prefix))
        continuing.emplace_back(spelling.substr(prefix.size()), id);
    }
    initial_ = double_array(std::move(initial));
    continuing_ = double_array(std::move(continuing));
  }

  void encode(std::string_view text, tokens& out, scratch& memory) const override {
    std::uint64_t hash = 0;
    const bool kept = text.size() <= word_cache::longest_word;
    if (kept && memory.words.find(text, out, hash)) return;
    const std::size_t before = out.size();
    bool known = text.size() <= most_characters_ || characters(text) <= most_characters_;
    for (std::size_t at = 0; known && at < text.size();) {
      auto [bytes, id] = (at == 0 ? initial_ : continuing_).longest_prefix(text.substr(at));
      known = bytes != 0;
      out.push_back(id);
      at += bytes;
    }
    if (!known) {
      out.resize(before);
      append_unknown(text, unknown_, out);
    }
    if (kept) memory.words.put(text, hash, out.data() + before, out.size() - before);
  }

 private:
  static std::size_t characters(std::string_view text) {
    std::size_t n = 0;
    for (std::size_t at = 0; at < text.size(); at += character_bytes(text[at])) ++n;
    return n;
  }

  token unknown_;
  std::size_t most_characters_;
  double_array initial_, continuing_;
};

class word_level final : public model {
 public:
  word_level(const vocabulary& words, token unknown) : words_(words), unknown_(unknown) {}
  void encode(std::string_view text, tokens& out, scratch&) const override {
    if (const token id = words_.find(text); id >= 0)
      out.push_back(id);
    else
      append_unknown(text, unknown_, out);
  }

 private:
  const vocabulary& words_;
  token unknown_;
};

}  // namespace

std::unique_ptr<model> make_word_piece(const vocabulary& words, token unknown, std::string continuing_prefix,
                                       std::size_t most_characters) {
  return std::make_unique<word_piece>(words, unknown, continuing_prefix, most_characters);
}
std::unique_ptr<model> make_word_level(const vocabulary& words, token unknown) {
  return std::make_unique<word_level>(words, unknown);
}

}  // namespace kiln::language::detail

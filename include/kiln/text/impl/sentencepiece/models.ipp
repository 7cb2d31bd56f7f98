#include <algorithm>
#include <optional>

#include "kiln/text/impl/double_array.hpp"
#include "kiln/text/impl/sentencepiece/parts.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::detail {

namespace {

class symbol_finder final : public model {
 public:
  symbol_finder(const defined_symbols& symbols, std::unique_ptr<model> rest)
      : symbols_(std::vector<double_array::entry>(symbols.begin(), symbols.end())), rest_(std::move(rest)) {}

  void encode(std::string_view text, tokens& out, scratch& memory) const override {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      const auto [bytes, id] = symbols_.longest_prefix(text.substr(at));
      if (bytes == 0) {
        at += character_bytes(text[at]);
        continue;
      }
      if (begin < at) rest_->encode(text.substr(begin, at - begin), out, memory);
      out.push_back(id);
      begin = at += bytes;
    }
    if (begin < text.size()) rest_->encode(text.substr(begin), out, memory);
  }

 private:
  double_array symbols_;
  std::unique_ptr<model> rest_;
};

class unit_model final : public model {
 public:
  unit_model(const vocabulary& words, bool of_words, token unknown, const std::array<token, 256>* fallback)
      : words_(words), of_words_(of_words), unknown_(unknown) {
    if (fallback != nullptr) fallback_ = *fallback;
  }

  void encode(std::string_view text, tokens& out, scratch&) const override {
    bool after_unknown = false;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at + character_bytes(text[at]);
      if (of_words_) end = std::min(text.find(metaspace_mark, end), text.size());
      const std::string_view unit = text.substr(at, end - at);
      at = end;
      const token id = words_.find(unit);
      const bool is_unknown = id < 0 || id == unknown_;
      if (!is_unknown)
        out.push_back(id);
      else if (fallback_)
        for (const char byte : unit) out.push_back((*fallback_)[static_cast<unsigned char>(byte)]);
      else if (!after_unknown)
        out.push_back(unknown_);
      after_unknown = is_unknown;
    }
  }

 private:
  const vocabulary& words_;
  bool of_words_;
  token unknown_;
  std::optional<std::array<token, 256>> fallback_;
};

}  // namespace

std::unique_ptr<model> make_symbol_finder(const defined_symbols& symbols, std::unique_ptr<model> rest) {
  return std::make_unique<symbol_finder>(symbols, std::move(rest));
}
std::unique_ptr<model> make_unit_model(const vocabulary& words, bool of_words, token unknown,
                                       const std::array<token, 256>* fallback) {
  return std::make_unique<unit_model>(words, of_words, unknown, fallback);
}

}  // namespace kiln::language::detail

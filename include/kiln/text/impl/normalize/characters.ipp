#include "kiln/text/impl/characters.hpp"
#include "kiln/text/impl/normalize/normalizers.hpp"

namespace kiln::language::detail {

namespace {

// Writes each character anew: `map(character, out)` appends what it becomes.
template <class Map> class character_map final : public normalizer {
 public:
  explicit character_map(Map map) : map_(map) {}

  void apply(std::string& text, std::string& spare, regex_memory&) const override {
    spare.clear();
    for (std::size_t at = 0; at < text.size();) map_(next_character(text, at), spare);
    text.swap(spare);
  }

 private:
  Map map_;
};

template <class Map> std::unique_ptr<normalizer> each_character(Map map) {
  return std::make_unique<character_map<Map>>(map);
}

void append_lower(std::int32_t c, std::string& out) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  } else if (c == 0x130) {  // the one character whose lower case is two, whatever stands around it
    out += "i\xCC\x87";
  } else {
    append_character(out, u_tolower(c));
  }
}

// The blocks of BERT's tokenization.py; one begins late there, as it does in tokenizers.
bool is_chinese(std::int32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void append_clean(std::int32_t c, std::string& out) {
  if (c == '\t' || c == '\n' || c == '\r' || is_whitespace(c))
    out += ' ';
  else if (c != 0 && c != 0xFFFD && !in_categories(c, U_GC_C_MASK & ~U_GC_CN_MASK))
    append_character(out, c);
}

class bert_normalizer final : public normalizer {
 public:
  explicit bert_normalizer(bert_normalization what) {
    if (what.clean_text) steps_.push_back(each_character(append_clean));
    if (what.handle_chinese_chars)
      steps_.push_back(each_character([](std::int32_t c, std::string& out) {
        const bool apart = is_chinese(c);
        if (apart) out += ' ';
        append_character(out, c);
        if (apart) out += ' ';
      }));
    if (what.strip_accents) {
      steps_.push_back(make_unicode_form(unicode_form::nfd));
      steps_.push_back(each_character([](std::int32_t c, std::string& out) {
        if (!in_categories(c, U_GC_MN_MASK)) append_character(out, c);
      }));
    }
    if (what.lowercase) steps_.push_back(make_lowercase());
  }

  void apply(std::string& text, std::string& spare, regex_memory& memory) const override {
    for (const auto& step : steps_) step->apply(text, spare, memory);
  }

 private:
  std::vector<std::unique_ptr<normalizer>> steps_;
};

}  // namespace

std::unique_ptr<normalizer> make_lowercase() { return each_character(append_lower); }

std::unique_ptr<normalizer> make_strip_accents() {
  return each_character([](std::int32_t c, std::string& out) {
    if (!in_categories(c, U_GC_M_MASK)) append_character(out, c);
  });
}

std::unique_ptr<normalizer> make_bert_normalizer(bert_normalization what) {
  return std::make_unique<bert_normalizer>(what);
}

std::unique_ptr<normalizer> make_nmt() {
  return each_character([](std::int32_t c, std::string& out) {
    if ((c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F)
      return;
    const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
                       c == 0xFFFD;
    append_character(out, space ? ' ' : c);
  });
}

}  // namespace kiln::language::detail

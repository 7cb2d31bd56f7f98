#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/byte_alphabet.hpp"
#include "kiln/text/impl/characters.hpp"
#include "kiln/text/impl/normalize/normalizers.hpp"

namespace kiln::language::detail {

namespace {

class unicode_normalizer final : public normalizer {
 public:
  explicit unicode_normalizer(unicode_form form) {
    UErrorCode fault = U_ZERO_ERROR;
    switch (form) {
      case unicode_form::nfc: how_ = icu::Normalizer2::getNFCInstance(fault); break;
      case unicode_form::nfd: how_ = icu::Normalizer2::getNFDInstance(fault); break;
      case unicode_form::nfkc: how_ = icu::Normalizer2::getNFKCInstance(fault); break;
      case unicode_form::nfkd: how_ = icu::Normalizer2::getNFKDInstance(fault); break;
    }
    if (U_FAILURE(fault)) raise(errc::internal, std::string("ICU has no normalization data: ") + u_errorName(fault));
  }

  void apply(std::string& text, std::string& spare, regex_memory&) const override {
    if (is_ascii(text)) return;
    const icu::StringPiece source(text.data(), static_cast<std::int32_t>(text.size()));
    UErrorCode fault = U_ZERO_ERROR;
    if (how_->isNormalizedUTF8(source, fault) != 0 && U_SUCCESS(fault)) return;
    spare.clear();
    fault = U_ZERO_ERROR;
    icu::StringByteSink<std::string> sink(&spare);
    how_->normalizeUTF8(0, source, sink, nullptr, fault);
    if (U_FAILURE(fault)) raise(errc::internal, std::string("ICU does not normalize a text: ") + u_errorName(fault));
    text.swap(spare);
  }

 private:
  const icu::Normalizer2* how_ = nullptr;
};

class strip final : public normalizer {
 public:
  strip(bool left, bool right) : left_(left), right_(right) {}

  void apply(std::string& text, std::string&, regex_memory&) const override {
    std::size_t begin = 0, end = text.size();
    while (right_ && end > 0 && is_whitespace(character_before(text, end))) end -= bytes_before(text, end);
    text.resize(end);
    while (left_ && begin < end && is_whitespace(character_at(text, begin))) begin += character_bytes(text[begin]);
    text.erase(0, begin);
  }

 private:
  bool left_, right_;
};

class prepend final : public normalizer {
 public:
  explicit prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(std::string& text, std::string&, regex_memory&) const override {
    if (!text.empty()) text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class replace final : public normalizer {
 public:
  replace(regex pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(std::string& text, std::string& spare, regex_memory& memory) const override {
    replace_matches(text, spare, pattern_, content_, memory);
  }

 private:
  regex pattern_;
  std::string content_;
};

class byte_characters final : public normalizer {
 public:
  void apply(std::string& text, std::string& spare, regex_memory&) const override {
    spare.clear();
    append_byte_characters(spare, text);
    text.swap(spare);
  }
};

}  // namespace

void replace_matches(std::string& text, std::string& spare, const regex& pattern, std::string_view content,
                     regex_memory& memory) {
  spare.clear();
  std::size_t done = 0;
  for (std::size_t from = 0, begin = 0, end = 0; from <= text.size() && pattern.find(text, from, begin, end, memory);) {
    spare.append(text, done, begin - done);
    spare += content;
    done = end;
    from = end > begin ? end : end < text.size() ? end + character_bytes(text[end]) : text.size() + 1;
  }
  if (done == 0 && spare.empty()) return;
  spare.append(text, done, text.size() - done);
  text.swap(spare);
}

std::unique_ptr<normalizer> make_unicode_form(unicode_form form) { return std::make_unique<unicode_normalizer>(form); }
std::unique_ptr<normalizer> make_strip(bool left, bool right) { return std::make_unique<strip>(left, right); }
std::unique_ptr<normalizer> make_prepend(std::string prefix) { return std::make_unique<prepend>(std::move(prefix)); }
std::unique_ptr<normalizer> make_replace(regex pattern, std::string content) {
  return std::make_unique<replace>(std::move(pattern), std::move(content));
}
std::unique_ptr<normalizer> make_byte_characters() { return std::make_unique<byte_characters>(); }

}  // namespace kiln::language::detail

#include <algorithm>

#include "kiln/text/impl/byte_alphabet.hpp"
#include "kiln/text/impl/decode/decoder.hpp"
#include "kiln/text/impl/model/byte_tokens.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::detail {

namespace {

// Bytes of a text that can still begin a character; 0 where it ends with a whole one or with none.
std::size_t unfinished_tail(std::string_view text) {
  for (std::size_t n = 1; n <= std::min<std::size_t>(3, text.size()); ++n) {
    const auto lead = static_cast<unsigned char>(text[text.size() - n]);
    if ((lead & 0xC0) == 0x80) continue;
    if (lead < 0xC2 || lead > 0xF4 || character_bytes(static_cast<char>(lead)) <= n) return 0;
    if (n == 1) return n;
    // the second byte's range depends on the first (Unicode, table 3-7)
    const auto second = static_cast<unsigned char>(text[text.size() - n + 1]);
    const bool fits = (lead != 0xE0 || second >= 0xA0) && (lead != 0xED || second < 0xA0) &&
                      (lead != 0xF0 || second >= 0x90) && (lead != 0xF4 || second < 0x90);
    return fits ? n : 0;
  }
  return 0;
}

class characters_sink final : public decode_sink {
 public:
  explicit characters_sink(decode_sink& out) : out_(out) {}

  void put(decoded& next) override {
    if (next.is_byte != bytes_ && !held_.empty()) flush();
    bytes_ = next.is_byte;
    if (held_.empty() && !next.is_byte && is_ascii(next.text)) return out_.put(next);
    held_ += next.text;
    const std::size_t whole = held_.size() - unfinished_tail(held_);
    emit(std::string_view(held_).substr(0, whole));
    held_.erase(0, whole);
  }
  void finish() override {
    flush();
    out_.finish();
  }

 private:
  void flush() {
    emit(held_);
    held_.clear();
  }
  void emit(std::string_view bytes) {
    if (bytes.empty()) return;
    decoded made;
    if (bytes_) {
      for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t begin = at;
        if (next_character(bytes, at) >= 0)
          made.text += bytes.substr(begin, at - begin);
        else
          for (std::size_t n = begin; n < at; ++n) made.text += replacement_character;
      }
    } else {
      append_valid(made.text, bytes);
    }
    out_.put(made);
  }

  decode_sink& out_;
  std::string held_;
  bool bytes_ = false;
};

class characters_step final : public decode_step {
 public:
  std::unique_ptr<decode_sink> start(decode_sink& out) const override { return std::make_unique<characters_sink>(out); }
};

}  // namespace

std::unique_ptr<decode_step> make_characters_step() { return std::make_unique<characters_step>(); }

std::unique_ptr<decode_step> make_byte_characters_step() {
  return make_lone_step([](decoded& token) {
    if (auto bytes = bytes_of_characters(token.text)) token.text = std::move(*bytes);
  });
}

std::unique_ptr<decode_step> make_byte_fallback_step() {
  return make_lone_step([](decoded& token) {
    const int byte = byte_of_spelling(token.text);
    if (byte < 0) return;
    token.text.assign(1, static_cast<char>(byte));
    token.is_byte = true;
  });
}

}  // namespace kiln::language::detail

#include <unicode/uscript.h>

#include "kiln/text/impl/characters.hpp"
#include "kiln/text/impl/split/behavior.hpp"

namespace kiln::language::detail {

namespace {

// Splits at the characters that a predicate holds for.
template <class Predicate> class character_splitter final : public splitter {
 public:
  character_splitter(Predicate matches, split_behavior behavior) : matches_(matches), behavior_(behavior) {}

  void apply(split_text& text, regex_memory&) const override {
    text.split_each([&](piece p, std::vector<piece>& out) {
      const std::string_view word = text[p];
      split_at_matches(
          p, behavior_, false,
          [&](std::size_t from, std::size_t& begin, std::size_t& end) {
            for (end = from; end < word.size();) {
              begin = end;
              if (matches_(next_character(word, end))) return true;
            }
            return false;
          },
          out);
    });
  }

 private:
  Predicate matches_;
  split_behavior behavior_;
};

class bert_splitter final : public splitter {
 public:
  void apply(split_text& text, regex_memory& memory) const override {
    spaces_->apply(text, memory);
    marks_->apply(text, memory);
  }

 private:
  std::unique_ptr<splitter> spaces_ = make_whitespace_split(), marks_ = make_punctuation(split_behavior::isolated);
};

class unicode_scripts final : public splitter {
 public:
  void apply(split_text& text, regex_memory&) const override {
    text.split_each([&](piece p, std::vector<piece>& out) {
      const std::string_view word = text[p];
      constexpr int none = -1, any = -2;
      int last = none;
      std::uint32_t begin = p.end;  // what stands in front of the first script is left out, as tokenizers does
      for (std::size_t at = 0; at < word.size();) {
        const auto here = p.begin + static_cast<std::uint32_t>(at);
        const int script = script_of(next_character(word, at), any);
        if (script == any) continue;
        if (script != last) {
          if (begin < here) out.push_back({begin, here});
          begin = here;
        }
        last = script;
      }
      out.push_back({begin, p.end});
    });
  }

 private:
  static int script_of(std::int32_t c, int any) {
    constexpr std::int32_t prolonged_sound_mark = 0x30FC;
    if (c == ' ') return any;
    UErrorCode fault = U_ZERO_ERROR;
    const UScriptCode script = uscript_getScript(c, &fault);
    if (script == USCRIPT_UNKNOWN) return any;
    if (script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA || c == prolonged_sound_mark) return USCRIPT_HAN;
    return script;
  }
};

class fixed_length final : public splitter {
 public:
  explicit fixed_length(std::size_t characters) : characters_(characters) {}

  void apply(split_text& text, regex_memory&) const override {
    text.split_each([&](piece p, std::vector<piece>& out) {
      const std::string_view word = text[p];
      for (std::size_t at = 0; at < word.size();) {
        const std::size_t begin = at;
        for (std::size_t n = 0; n < characters_ && at < word.size(); ++n) at += character_bytes(word[at]);
        out.push_back({p.begin + static_cast<std::uint32_t>(begin), p.begin + static_cast<std::uint32_t>(at)});
      }
    });
  }

 private:
  std::size_t characters_;
};

template <class Predicate> std::unique_ptr<splitter> at_characters(Predicate matches, split_behavior behavior) {
  return std::make_unique<character_splitter<Predicate>>(matches, behavior);
}

}  // namespace

std::unique_ptr<splitter> make_whitespace_split() {
  return at_characters([](std::int32_t c) { return is_whitespace(c); }, split_behavior::removed);
}
std::unique_ptr<splitter> make_delimiter(std::int32_t character) {
  return at_characters([character](std::int32_t c) { return c == character; }, split_behavior::removed);
}
std::unique_ptr<splitter> make_punctuation(split_behavior behavior) {
  return at_characters([](std::int32_t c) { return is_punctuation(c); }, behavior);
}
std::unique_ptr<splitter> make_digits(bool individual) {
  return at_characters([](std::int32_t c) { return is_numeric(c); },
                       individual ? split_behavior::isolated : split_behavior::contiguous);
}
std::unique_ptr<splitter> make_bert_splitter() { return std::make_unique<bert_splitter>(); }
std::unique_ptr<splitter> make_unicode_scripts() { return std::make_unique<unicode_scripts>(); }
std::unique_ptr<splitter> make_fixed_length(std::size_t characters) {
  return std::make_unique<fixed_length>(characters);
}

}  // namespace kiln::language::detail

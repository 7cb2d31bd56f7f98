#include "kiln/text/impl/characters.hpp"
#include "kiln/text/impl/split/behavior.hpp"

namespace kiln::language::detail {

namespace {

class pattern_splitter final : public splitter {
 public:
  pattern_splitter(regex pattern, split_behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void apply(split_text& text, regex_memory& memory) const override {
    text.split_each([&](piece p, std::vector<piece>& out) {
      const std::string_view subject = text[p];
      std::size_t last_end = std::string_view::npos;
      split_at_matches(
          p, behavior_, invert_,
          [&](std::size_t from, std::size_t& begin, std::size_t& end) {
            if (!pattern_.find(subject, from, begin, end, memory)) return false;
            if (begin == end && end == last_end) {  // an empty match right after a match is none
              if (end >= subject.size()) return false;
              from = end + character_bytes(subject[end]);
              if (!pattern_.find(subject, from, begin, end, memory)) return false;
            }
            last_end = end;
            return true;
          },
          out);
    });
  }

 private:
  regex pattern_;
  split_behavior behavior_;
  bool invert_;
};

}  // namespace

std::unique_ptr<splitter> make_split(regex pattern, split_behavior behavior, bool invert) {
  return std::make_unique<pattern_splitter>(std::move(pattern), behavior, invert);
}

std::unique_ptr<splitter> make_whitespace() {
  // letters as Rust's regular expressions have them, which is not as Oniguruma has them
  const std::string word = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}";
  return make_split(regex("[" + word + "]+|[^" + word + "\\s]+"), split_behavior::removed, true);
}

}  // namespace kiln::language::detail

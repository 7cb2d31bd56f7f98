#include "kiln/text/impl/split/behavior.hpp"

namespace kiln::language::detail {

namespace {

class metaspace final : public splitter {
 public:
  metaspace(std::string mark, prepend_scheme scheme, bool split)
      : mark_(std::move(mark)), scheme_(scheme), split_(split) {}

  void apply(split_text& text, regex_memory&) const override {
    const bool from_start = text.from_start;
    text.rewrite_each([&](std::string_view word, bool is_first, std::string& out) {
      const bool prepend =
          scheme_ == prepend_scheme::always || (scheme_ == prepend_scheme::first && is_first && from_start);
      if (prepend && !word.starts_with(' ') && !word.starts_with(mark_)) out += mark_;
      for (std::size_t done = 0; done < word.size();) {
        const std::size_t space = std::min(word.find(' ', done), word.size());
        out.append(word, done, space - done);
        if (space < word.size()) out += mark_;
        done = space + 1;
      }
    });
    if (!split_) return;
    text.split_each([&](piece p, std::vector<piece>& out) {
      const std::string_view word = text[p];
      split_at_matches(
          p, split_behavior::merged_with_next, false,
          [&](std::size_t from, std::size_t& begin, std::size_t& end) {
            begin = word.find(mark_, from);
            end = begin + mark_.size();
            return begin != std::string_view::npos;
          },
          out);
    });
  }

 private:
  std::string mark_;
  prepend_scheme scheme_;
  bool split_;
};

}  // namespace

std::unique_ptr<splitter> make_metaspace(std::string mark, prepend_scheme scheme, bool split) {
  return std::make_unique<metaspace>(std::move(mark), scheme, split);
}

}  // namespace kiln::language::detail

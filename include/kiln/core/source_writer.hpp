#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

inline void put_piece(std::string& to, std::string_view s) { to += s; }
template <std::integral N> void put_piece(std::string& to, N n) { to += std::to_string(n); }

/// Text of pieces: strings and integers.
template <class... Pieces> std::string cat(const Pieces&... pieces) {
  std::string s;
  (put_piece(s, pieces), ...);
  return s;
}

/// Lines of C++, indented by the braces that are open: a line that ends with `{` opens one, one that begins with `}`
/// closes it.
class source_writer {
 public:
  explicit source_writer(std::size_t depth = 0) : depth_(depth) {}
  template <class... Pieces> void line(const Pieces&... pieces) {
    const std::string s = cat(pieces...);
    if (s.starts_with('}')) --depth_;
    if (!s.empty() && s[0] != '#') text_.append(2 * depth_, ' ');
    text_ += s;
    text_ += '\n';
    if (s.ends_with('{')) ++depth_;
  }
  /// `for (std::int64_t name = 0; name < extent; ++name) {`; nothing for an extent of 1, whose index is 0.
  void loop(std::string_view name, std::int64_t extent) {
    line("for (std::int64_t ", name, " = 0; ", name, " < ", extent, "; ++", name, ") {");
  }
  void close(std::size_t loops = 1) {
    while (loops-- > 0) line("}");
  }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
  std::size_t depth_;
};

}  // namespace kiln

#include "kiln/text/impl/guidance/lark_tokens.hpp"

#include <utility>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/guidance/lark.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::guidance {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class scanner {
 public:
  explicit scanner(std::string_view text) : text_(text) {}

  std::vector<lark_token> all() {
    while (skip_blanks(), at_ < text_.size()) one();
    push(lark_token::kind::end, "");
    return std::move(out_);
  }

 private:
  using kind = lark_token::kind;
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  [[noreturn]] void fail(const std::string& what) const { lark_fault(errc::malformed, line_, what); }
  void push(kind what, std::string text, std::string flags = {}) {
    out_.push_back({what, std::move(text), std::move(flags), line_, std::exchange(first_, false)});
  }

  void skip_blanks() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_, first_ = true;
      } else if (c == '#' || (c == '/' && peek(1) == '/')) {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (c != ' ' && c != '\t' && c != '\r' && c != '\f') {
        return;
      }
    }
  }

  void one() {
    const char c = peek();
    if (is_letter(c) || c == '_') return push(kind::name, name());
    if (is_digit(c) || (c == '-' && is_digit(peek(1)))) {
      const std::size_t from = at_++;
      while (is_digit(peek())) ++at_;
      return push(kind::number, std::string(text_.substr(from, at_ - from)));
    }
    if (c == '"') return string();
    if (c == '/') return regex();
    if (c == '<') return special();
    if (c == '%') {
      ++at_;
      const std::string word = name();
      if (word.empty()) fail("expected a directive after '%'");
      push(kind::directive, word);
      if (word == "json" || word == "regex" || word == "llguidance") json();
      return;
    }
    if (c == '.' && peek(1) == '.') return mark(2);
    if (c == '-' && peek(1) == '>') return mark(2);
    if (std::string_view(":|()[]*+?!~,{}.=<>@&").find(c) == std::string_view::npos)
      fail("expected a rule's part, found '" + std::string(1, c) + "'");
    mark(1);
  }
  void special() {
    const std::size_t end = text_.substr(at_, 100).find_first_of("> \t\r\n", 1);
    if (end == text_.npos || text_[at_ + end] != '>') fail("expected a special token, such as <|end|>");
    push(kind::special, std::string(text_.substr(at_ + 1, end - 1)));
    at_ += end + 1;
  }
  void mark(std::size_t length) {
    const std::string text(text_.substr(at_, length));
    at_ += length;
    push(kind::mark, text);
  }
  std::string name() {
    const std::size_t from = at_;
    while (is_letter(peek()) || is_digit(peek()) || peek() == '_' ||
           (peek() == '-' && (is_letter(peek(1)) || is_digit(peek(1)))))
      ++at_;
    return std::string(text_.substr(from, at_ - from));
  }
  std::string flags() {
    const std::size_t from = at_;
    while (is_letter(peek())) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }

  void string() {
    std::string out;
    for (++at_; peek() != '"';) {
      if (at_ >= text_.size() || peek() == '\n') fail("expected '\"' at a string's end");
      if (peek() != '\\') {
        out += text_[at_++];
        continue;
      }
      ++at_;
      escape(out);
    }
    ++at_;
    const std::string after = peek() == 'i' && !is_letter(peek(1)) ? flags() : "";
    push(kind::string, out, after);
  }
  void escape(std::string& out) {
    const char c = peek();
    ++at_;
    switch (c) {
      case 'n': out += '\n'; return;
      case 't': out += '\t'; return;
      case 'r': out += '\r'; return;
      case 'f': out += '\f'; return;
      case 'b': out += '\b'; return;
      case 'v': out += '\v'; return;
      case '0': out += '\0'; return;
      case 'x': return code(out, 2);
      case 'u': return code(out, 4);
      case 'U': return code(out, 8);
      case '"':
      case '\'':
      case '/':
      case '\\': out += c; return;
      default: fail("expected an escape of a string, found '\\" + std::string(1, c) + "'");
    }
  }
  void code(std::string& out, std::size_t digits) {
    std::uint32_t value = 0;
    for (std::size_t k = 0; k < digits; ++k, ++at_) {
      const char c = peek();
      const int digit = is_digit(c)              ? c - '0'
                        : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                        : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                                 : -1;
      if (digit < 0) fail("expected " + std::to_string(digits) + " hexadecimal digits in a string");
      value = value * 16 + static_cast<std::uint32_t>(digit);
    }
    if (value > last_code_point || (value >= 0xD800 && value <= 0xDFFF)) fail("expected a character's number");
    detail::append_character(out, static_cast<std::int32_t>(value));
  }

  void regex() {
    const std::size_t from = ++at_;
    for (bool in_class = false; peek() != '/' || in_class; ++at_) {
      if (at_ >= text_.size() || peek() == '\n') fail("expected '/' at a regular expression's end");
      if (peek() == '\\')
        ++at_;
      else if (peek() == '[')
        in_class = true;
      else if (peek() == ']')
        in_class = false;
    }
    const std::string inside(text_.substr(from, at_ - from));
    ++at_;
    push(kind::regex, inside, flags());
  }

  void json() {
    skip_blanks();
    if (peek() != '{') fail("expected '{' after %" + out_.back().text);
    const std::size_t from = at_;
    int depth = 0;
    bool in_string = false;
    const std::size_t began = line_;
    for (;; ++at_) {
      if (at_ >= text_.size()) lark_fault(errc::malformed, began, "expected '}' at the end of what begins here");
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (in_string) {
        if (c == '\\')
          ++at_;
        else if (c == '"')
          in_string = false;
        continue;
      }
      if (c == '"') in_string = true;
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      if (depth == 0) break;
    }
    ++at_;
    push(kind::json, std::string(text_.substr(from, at_ - from)));
  }

  std::string_view text_;
  std::size_t at_ = 0, line_ = 1;
  bool first_ = true;
  std::vector<lark_token> out_;
};

}  // namespace

std::vector<lark_token> lark_tokens(std::string_view text) { return scanner(text).all(); }

}  // namespace kiln::language::guidance

#include "kiln/text/impl/jinja/lexer.hpp"

#include <array>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/jinja/lex_string.hpp"
#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

std::string with_plain_newlines(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
    } else {
      out += '\n';
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    }
  }
  return out;
}

bool is_digit_char(char c) { return c >= '0' && c <= '9'; }

class lexer {
 public:
  lexer(std::string_view source, const std::string& name, const syntax& s)
      : source_(with_plain_newlines(source)), name_(name), syntax_(s) {
    if (!s.keep_trailing_newline && !source_.empty() && source_.back() == '\n') source_.pop_back();
  }

  std::vector<lexeme> run() {
    while (at_ < source_.size()) data();
    add(token_kind::end, {});
    return std::move(out_);
  }

 private:
  bool next_is(std::string_view text) const { return std::string_view(source_).substr(at_).starts_with(text); }
  [[noreturn]] void fail(const std::string& message) { fail_at(name_, here(), message); }

  position here() {
    // counted on from the last place asked for
    for (; counted_ < at_; counted_ = after_point(source_, counted_)) {
      ++column_;
      if (source_[counted_] == '\n') ++line_, column_ = 1;
    }
    return {line_, column_};
  }
  void add(token_kind k, std::string text) { out_.push_back({k, std::move(text), here()}); }
  void add_data(std::string_view text, position at) {
    if (!text.empty()) out_.push_back({token_kind::data, std::string(text), at});
  }

  // The begin of the next tag from `from`, or the end of the text.
  std::size_t find_tag(std::size_t from) const {
    for (std::size_t i = source_.find('{', from); i != source_.npos; i = source_.find('{', i + 1))
      if (i + 1 < source_.size() && (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#')) return i;
    return source_.size();
  }

  // The text before a tag, less what the tag's sign and lstrip_blocks take away.
  std::string_view before_tag(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return strip(text, false, true);
    if (sign == '+' || is_variable || !syntax_.lstrip_blocks) return text;
    const std::size_t line = text.rfind('\n') + 1;  // 0 where there is none
    if (line == 0 && !line_starts_) return text;
    return strip(text.substr(line), true, false).empty() ? text.substr(0, line) : text;
  }

  void skip_space() {
    while (at_ < source_.size()) {
      std::size_t next = at_;
      if (!is_space(next_point(source_, next))) return;
      at_ = next;
    }
  }
  // After a tag's end, whose sign is `sign`.
  void after_tag(char sign, bool trims) {
    const std::size_t begin = at_;
    if (sign == '-')
      skip_space();
    else if (sign != '+' && trims && next_is("\n"))
      ++at_;
    line_starts_ = at_ > begin && source_[at_ - 1] == '\n';
  }

  void data() {
    const position begin = here();
    const std::size_t tag = find_tag(at_);
    const std::string_view text = std::string_view(source_).substr(at_, tag - at_);
    at_ = tag;
    if (tag == source_.size()) return add_data(text, begin);
    const char what = source_[tag + 1], sign = sign_at(tag + 2);
    add_data(before_tag(text, sign, what == '{'), begin);
    if (what == '#') return comment();
    if (what == '%' && raw(sign)) return;
    const position start = here();
    out_.push_back({what == '{' ? token_kind::variable_begin : token_kind::block_begin, source_.substr(tag, 2), start});
    at_ += sign ? 3 : 2;
    line_starts_ = false;
    code(what == '{', start);
  }
  char sign_at(std::size_t i) const {
    return i < source_.size() && (source_[i] == '-' || source_[i] == '+') ? source_[i] : '\0';
  }

  void comment() {
    const std::size_t end = source_.find("#}", at_ + 2);
    if (end == source_.npos) fail("expected '#}' that ends this comment, found the end of the template");
    const char sign = end > at_ + 2 ? sign_at(end - 1) : '\0';
    at_ = end + 2;
    after_tag(sign, syntax_.trim_blocks);
  }

  // {% raw %} ... {% endraw %}; false where the tag is another.
  bool raw(char sign) {
    const std::size_t start = at_;
    at_ += sign ? 3 : 2;
    skip_space();
    const bool is_raw = next_is("raw");
    if (is_raw) at_ += 3;
    skip_space();
    const bool strips = is_raw && next_is("-%}");
    if (!is_raw || (!strips && !next_is("%}"))) return at_ = start, false;
    at_ += strips ? 3 : 2;
    after_tag(strips ? '-' : '\0', false);
    const position begin = here();
    for (std::size_t i = source_.find("{%", at_); i != source_.npos; i = source_.find("{%", i + 1)) {
      const std::string_view text = std::string_view(source_).substr(at_, i - at_);
      const std::size_t back = at_;
      const char begin_sign = sign_at(i + 2);
      at_ = i + (begin_sign ? 3 : 2);
      skip_space();
      const bool is_end = next_is("endraw");
      if (is_end) at_ += 6;
      skip_space();
      const char end_sign = sign_at(at_);
      if (is_end && (next_is("%}") || (end_sign && std::string_view(source_).substr(at_ + 1).starts_with("%}")))) {
        add_data(before_tag(text, begin_sign, false), begin);
        at_ += end_sign ? 3 : 2;
        after_tag(end_sign, syntax_.trim_blocks);
        return true;
      }
      at_ = back;
    }
    at_ = start;
    fail("expected '{% endraw %}' for this 'raw', found the end of the template");
  }

  void code(bool is_variable, position start) {
    const std::string_view end = is_variable ? "}}" : "%}";
    std::string open;  // brackets
    for (;;) {
      skip_space();
      if (at_ >= source_.size())
        fail_at(name_, start, "expected '" + std::string(end) + "' that ends this tag, found the end of the template");
      if (open.empty()) {
        const char sign = next_is("-") || (!is_variable && next_is("+")) ? source_[at_] : '\0';
        if (std::string_view(source_).substr(at_ + (sign ? 1 : 0)).starts_with(end)) {
          add(is_variable ? token_kind::variable_end : token_kind::block_end, std::string(end));
          at_ += sign ? 3 : 2;
          return after_tag(sign, !is_variable && syntax_.trim_blocks);
        }
      }
      token(open);
    }
  }

  void token(std::string& open) {
    const char c = source_[at_];
    std::size_t next = at_;
    const std::uint32_t point = next_point(source_, next);
    if (is_digit_char(c)) return number();
    if (c == '\'' || c == '"') return string();
    if (is_name_begin(point)) {
      const std::size_t begin = at_;
      const position place = here();
      for (at_ = next; next < source_.size() && is_name_rest(next_point(source_, next));) at_ = next;
      out_.push_back({token_kind::name, source_.substr(begin, at_ - begin), place});
      return;
    }
    constexpr std::array<std::string_view, 26> ops = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                      "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                      ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (const std::string_view op : ops) {
      if (!next_is(op)) continue;
      bracket(op[0], open);
      add(token_kind::op, std::string(op));
      at_ += op.size();
      return;
    }
    if (!is_printable(point))
      fail("expected an expression's next token, found the byte " + std::to_string(static_cast<unsigned char>(c)));
    fail("expected an expression's next token, found '" + source_.substr(at_, next - at_) + "'");
  }

  void bracket(char c, std::string& open) {
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (open.empty()) fail("expected the end of the tag, found '" + std::string(1, c) + "' where no bracket is open");
    if (open.back() != c) fail("expected '" + std::string(1, open.back()) + "', found '" + c + "'");
    open.pop_back();
  }

  void number() {
    const std::size_t begin = at_;
    const position place = here();
    const auto digits = [&](auto is_one) {
      while (at_ < source_.size() &&
             (is_one(source_[at_]) || (source_[at_] == '_' && at_ + 1 < source_.size() && is_one(source_[at_ + 1]))))
        ++at_;
    };
    const auto is_hex = [](char c) { return is_digit_char(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); };
    token_kind k = token_kind::integer;
    const char base = at_ + 1 < source_.size() && source_[at_] == '0' ? static_cast<char>(source_[at_ + 1] | 32) : '\0';
    if (base == 'x' || base == 'o' || base == 'b') {
      at_ += 2;
      digits(is_hex);
    } else {
      digits(is_digit_char);
      const auto digit_at = [&](std::size_t i) { return i < source_.size() && is_digit_char(source_[i]); };
      const bool after_point = !out_.empty() && out_.back().text == "." && out_.back().kind == token_kind::op;
      if (!after_point && at_ < source_.size() && source_[at_] == '.' && digit_at(at_ + 1)) {
        ++at_, k = token_kind::real;
        digits(is_digit_char);
      }
      if (!after_point && at_ < source_.size() && (source_[at_] | 32) == 'e') {
        const std::size_t sign =
            at_ + 1 < source_.size() && (source_[at_ + 1] == '+' || source_[at_ + 1] == '-') ? 2 : 1;
        if (digit_at(at_ + sign)) {
          at_ += sign, k = token_kind::real;
          digits(is_digit_char);
        }
      }
    }
    std::string text;
    for (const char c : source_.substr(begin, at_ - begin))
      if (c != '_') text += c;
    out_.push_back({k, std::move(text), place});
  }

  void string() {
    const std::size_t begin = at_;
    const char quote = source_[at_];
    for (std::size_t i = at_ + 1; i < source_.size(); ++i) {
      if (source_[i] == '\\') {
        ++i;
      } else if (source_[i] == quote) {
        std::string text;
        const std::string trouble = unescape(std::string_view(source_).substr(begin + 1, i - begin - 1), text);
        if (!trouble.empty()) fail(trouble);
        add(token_kind::string, std::move(text));
        at_ = i + 1;
        return;
      }
    }
    fail("expected the quote that ends this string, found the end of the template");
  }

  std::string source_;
  const std::string& name_;
  const syntax& syntax_;
  std::size_t at_ = 0, counted_ = 0;
  std::uint32_t line_ = 1, column_ = 1;
  bool line_starts_ = true;  // the text so far ends with a line's end, or there is none
  std::vector<lexeme> out_;
};

}  // namespace

std::vector<lexeme> lex(std::string_view source, const std::string& name, const syntax& s) {
  return lexer(source, name, s).run();
}

std::string describe(const lexeme& t) {
  switch (t.kind) {
    case token_kind::data: return "text";
    case token_kind::end: return "the end of the template";
    case token_kind::string: return "a string";
    default: return "'" + t.text + "'";
  }
}

std::string place(const std::string& name, position at) {
  return name + ", line " + std::to_string(at.line) + ", column " + std::to_string(at.column);
}

void fail_at(const std::string& name, position at, const std::string& message) {
  throw error(errc::malformed, message).at_source(place(name, at));
}

}  // namespace kiln::language::jinja

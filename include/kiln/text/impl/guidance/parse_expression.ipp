#include <algorithm>
#include <string>
#include <utility>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/guidance/expression.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::guidance {

namespace {

constexpr std::uint32_t most_repeats = 10'000;
constexpr int most_depth = 200;

class parser {
 public:
  parser(std::string_view pattern, extent e) : extent_(e) {
    for (std::size_t at = 0; at < pattern.size();) {
      const std::int32_t c = detail::next_character(pattern, at);
      if (c < 0) fail(errc::malformed, "expected UTF-8", pattern_.size());
      pattern_.push_back(static_cast<char32_t>(c));
    }
  }

  expression parse() {
    expression e = choice(0);
    if (!ended()) fail(errc::malformed, "expected '(' before ')'");
    return e;
  }

 private:
  using kind = expression::kind;

  bool ended() const { return at_ == pattern_.size(); }
  bool next_is(char32_t c, std::size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() && pattern_[at_ + ahead] == c;
  }
  bool take(char32_t c) { return next_is(c) && ++at_ > 0; }
  bool take(std::u32string_view text) {
    if (std::u32string_view(pattern_).substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  [[noreturn]] void fail(errc code, const std::string& why) const { fail(code, why, at_); }
  [[noreturn]] void fail(errc code, const std::string& why, std::size_t at) const {
    std::string found = "the end";
    if (at < pattern_.size()) {
      found = "'";
      detail::append_character(found, static_cast<std::int32_t>(pattern_[at]));
      found += "'";
    }
    raise(code, "regular expression: position " + std::to_string(at) + ": " + why + ", found " + found);
  }

  static expression one_of(code_ranges characters) {
    expression e;
    e.what = kind::characters;
    e.characters = std::move(characters);
    return e;
  }
  static expression any_text() {
    expression e;
    e.what = kind::repeat;
    e.parts.push_back(one_of({{0, last_code_point}}));
    e.least = 0;
    e.most = unbounded;
    return e;
  }

  expression choice(int depth) {
    if (depth > most_depth)
      fail(errc::limit, "expected at most " + std::to_string(most_depth) + " groups in each other");
    expression e;
    e.what = kind::choice;
    do e.parts.push_back(sequence(depth));
    while (take('|'));
    return e.parts.size() == 1 ? expression(std::move(e.parts.front())) : e;
  }

  expression sequence(int depth) {
    expression e;
    const bool free_ends = depth == 0 && extent_ == extent::part;
    const bool bound = depth == 0 && take('^');
    if (free_ends && !bound) e.parts.push_back(any_text());
    while (!ended() && !next_is('|') && !next_is(')')) {
      if (depth == 0 && next_is('$') && (at_ + 1 == pattern_.size() || next_is('|', 1))) {
        ++at_;
        return e;
      }
      e.parts.push_back(repeated(depth));
    }
    if (free_ends) e.parts.push_back(any_text());
    return e;
  }

  expression repeated(int depth) {
    expression part = atom(depth);
    expression e;
    e.what = kind::repeat;
    if (take('*')) {
      e.least = 0, e.most = unbounded;
    } else if (take('+')) {
      e.most = unbounded;
    } else if (take('?')) {
      e.least = 0;
    } else if (take('{')) {
      counts(e);
    } else {
      return part;
    }
    take('?');  // a lazy repeat matches the same texts
    if (next_is('*') || next_is('+') || next_is('?') || next_is('{'))
      fail(errc::unsupported, "expected one repeat of an expression");
    e.parts.push_back(std::move(part));
    return e;
  }

  void counts(expression& e) {
    const std::size_t begin = at_;
    const auto count = [&](std::uint32_t otherwise) {
      const std::size_t first = at_;
      std::uint32_t n = 0;
      for (; !ended() && pattern_[at_] >= '0' && pattern_[at_] <= '9'; ++at_) {
        n = n * 10 + (pattern_[at_] - '0');
        if (n > most_repeats) fail(errc::limit, "expected a count of at most " + std::to_string(most_repeats));
      }
      return at_ == first ? otherwise : n;
    };
    e.least = count(unbounded);
    if (take(',')) {
      e.most = count(unbounded);
      if (e.least == unbounded && e.most != unbounded) e.least = 0;
    } else {
      e.most = e.least;
    }
    if (e.least == unbounded || !take('}')) fail(errc::malformed, "expected {n}, {n,}, {,m} or {n,m}");
    if (e.most < e.least) fail(errc::malformed, "expected counts in order", begin);
  }

  // A literal character.
  expression literal(std::uint32_t c) const { return one_of(any_case_ ? in_any_case({{c, c}}) : code_ranges{{c, c}}); }
  code_ranges any_character() const {
    if (dot_all_) return {{0, last_code_point}};
    return negated(extent_ == extent::whole ? code_ranges{{'\n', '\n'}}
                                            : code_ranges{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
  }

  expression atom(int depth) {
    const char32_t c = pattern_[at_];
    switch (c) {
      case '(': return group(depth);
      case '[': return one_of(set());
      case '.': ++at_; return one_of(any_character());
      case '\\': return one_of(escape());
      case '^':
      case '$': fail(errc::unsupported, "expected ^ and $ at the ends of an expression alone");
      case '*':
      case '+':
      case '?':
      case '{': fail(errc::malformed, "expected what is repeated");
      default: ++at_; return literal(c);
    }
  }

  expression group(int depth) {
    const std::size_t begin = at_++;
    const bool any_case = any_case_, dot_all = dot_all_;  // flags of a group hold in it alone
    if (take('?')) {
      if (take(U"P<") || (next_is('<') && !next_is('=', 1) && !next_is('!', 1) && take('<'))) {
        const std::size_t name = at_;
        while (!ended() && !next_is('>') && !next_is(')')) ++at_;
        if (at_ == name || !take('>')) fail(errc::malformed, "expected a group's name and '>'");
      } else {
        for (; next_is('i') || next_is('s'); ++at_) (next_is('i') ? any_case_ : dot_all_) = true;
        if (!take(':'))
          fail(errc::unsupported, "expected (?:, (?i:, (?s: or a name: there are no assertions or conditions");
      }
    }
    expression e = choice(depth + 1);
    if (!take(')')) fail(errc::malformed, "expected ')' for the '(' at " + std::to_string(begin));
    any_case_ = any_case, dot_all_ = dot_all;
    return e;
  }

  std::uint32_t hexadecimal(std::size_t length) {
    const bool braces = take('{');
    std::uint32_t value = 0;
    std::size_t n = 0;
    for (; !ended() && (braces ? n < 8 : n < length); ++n, ++at_) {
      const char32_t c = pattern_[at_];
      const bool small = c >= 'a' && c <= 'f', big = c >= 'A' && c <= 'F';
      if (!small && !big && !(c >= '0' && c <= '9')) break;
      value = value * 16 + (small ? c - 'a' + 10 : big ? c - 'A' + 10 : c - '0');
    }
    if (n == 0 || (!braces && n != length) || (braces && !take('}')))
      fail(errc::malformed, "expected " + std::to_string(length) + " hexadecimal digits");
    if (value > last_code_point || (value >= 0xD800 && value <= 0xDFFF))
      fail(errc::malformed, "expected a character's number before");
    return value;
  }

  // JSON schema's patterns are ECMA-262's, whose classes are ASCII's, and are judged by engines whose classes are
  // Unicode's: there a character belongs where both take it. What is negated is then what one of them takes.
  code_ranges taken(const code_ranges& unicode, bool by_both) const {
    if (extent_ == extent::whole) return unicode;
    if (by_both) return intersection(unicode, {{'\t', '\r'}, {' ', '~'}});
    code_ranges wide = unicode;
    wide.emplace_back(0xFEFF, 0xFEFF);  // white space of ECMA-262 alone
    return joined(std::move(wide));
  }

  code_ranges escape() {
    ++at_;
    if (ended()) fail(errc::malformed, "expected an escaped character");
    const char32_t c = pattern_[at_++];
    const auto one = [](std::uint32_t code) { return code_ranges{{code, code}}; };
    switch (c) {
      case 'd': return taken(digits(), !inverted_);
      case 'D': return negated(taken(digits(), inverted_));
      case 'w': return taken(word_characters(), !inverted_);
      case 'W': return negated(taken(word_characters(), inverted_));
      case 's': return taken(white_space(), !inverted_);
      case 'S': return negated(taken(white_space(), inverted_));
      case 'n': return one('\n');
      case 't': return one('\t');
      case 'r': return one('\r');
      case 'f': return one('\f');
      case 'v': return one('\v');
      case 'a': return one('\a');
      case 'x': return one(hexadecimal(2));
      case 'u': return one(hexadecimal(4));
      case 'U': return one(hexadecimal(8));
      default: break;
    }
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
      fail(errc::unsupported, "expected one of the escapes \\d \\D \\w \\W \\s \\S \\n \\t \\r \\f \\v \\a \\x \\u \\U",
           at_ - 1);
    return one(c);
  }

  // One item of a class; a single character has one range of one.
  code_ranges item() {
    if (ended()) fail(errc::malformed, "expected ']'");
    if (next_is('\\')) return escape();
    const char32_t c = pattern_[at_];
    const bool doubled = next_is(c, 1) && (c == '&' || c == '~' || c == '|' || c == '-');
    if (c == '[' || doubled)
      fail(errc::unsupported, "expected no class or operator in a class; a character is escaped by \\");
    ++at_;
    return {{c, c}};
  }

  code_ranges set() {
    ++at_;
    inverted_ = take('^');
    code_ranges all;
    for (bool first = true; first || !next_is(']'); first = false) {
      const std::size_t begin = at_;
      code_ranges one = item();
      if (next_is('-') && !next_is(']', 1)) {
        ++at_;
        const code_ranges last = item();
        const auto single = [](const code_ranges& r) { return r.size() == 1 && r[0].first == r[0].second; };
        if (!single(one) || !single(last) || one[0].first > last[0].first)
          fail(errc::malformed, "expected a range of two characters in order", begin);
        one[0].second = last[0].first;
      }
      all.insert(all.end(), one.begin(), one.end());
    }
    ++at_;
    if (any_case_) all = in_any_case(std::move(all));
    return std::exchange(inverted_, false) ? negated(all) : joined(std::move(all));
  }

  std::u32string pattern_;
  std::size_t at_ = 0;
  extent extent_;
  bool inverted_ = false;  // in a class that begins with ^
  bool any_case_ = false, dot_all_ = false;
};

}  // namespace

code_ranges in_any_case(code_ranges characters) {
  const code_ranges small = intersection(characters, {{'a', 'z'}}), big = intersection(characters, {{'A', 'Z'}});
  constexpr std::uint32_t apart = 'a' - 'A';
  for (const auto& [low, high] : small) characters.emplace_back(low - apart, high - apart);
  for (const auto& [low, high] : big) characters.emplace_back(low + apart, high + apart);
  return joined(std::move(characters));
}

expression parse_expression(std::string_view pattern, extent e) { return parser(pattern, e).parse(); }

}  // namespace kiln::language::guidance

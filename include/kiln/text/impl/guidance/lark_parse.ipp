#include <charconv>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/guidance/lark.hpp"
#include "kiln/text/impl/guidance/lark_tokens.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::guidance {

namespace {

constexpr int most_depth = 200;
constexpr std::uint32_t most_repeats = 10'000;

class parser {
 public:
  explicit parser(std::string_view text) : tokens_(lark_tokens(text)) {}

  lark_grammar parse() {
    while (now().what != kind::end) statement();
    return std::move(out_);
  }

 private:
  using kind = lark_token::kind;

  const lark_token& now(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool is_mark(std::string_view text, std::size_t ahead = 0) const {
    return now(ahead).what == kind::mark && now(ahead).text == text;
  }
  bool take(std::string_view mark) { return is_mark(mark) && ++at_ > 0; }
  [[noreturn]] void fail(errc code, const std::string& what) const {
    lark_fault(code, now().line, what + (now().what == kind::end ? ", found the end" : ", found '" + now().text + "'"));
  }
  std::string name() {
    if (now().what != kind::name) fail(errc::malformed, "expected a name");
    return tokens_[at_++].text;
  }

  // Where a definition begins, a rule's parts end: its name is the first in a line, and a colon follows.
  bool is_definition() const {
    std::size_t k = 0;
    if (!now().is_first) return false;
    if (is_mark("?") || is_mark("!")) ++k;
    if (now(k++).what != kind::name) return false;
    if (is_mark(".", k)) k += 2;
    for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{", "}")})
      if (is_mark(open, k)) {
        while (!is_mark(close, k) && now(k).what != kind::end) ++k;
        ++k;
      }
    return is_mark(":", k);
  }

  void statement() {
    if (now().what == kind::directive) return directive();
    if (!is_definition()) fail(errc::malformed, "expected a definition, NAME: …, or a directive");
    if (!take("?")) take("!");
    const std::size_t line = now().line;
    const std::string defined = name();
    if (take(".")) ++at_;  // priorities choose among readings, and do not change which texts there are
    if (is_mark("{")) fail(errc::unsupported, "expected a rule without parameters");
    std::vector<lark_item> suffix;
    const bool is_lazy = take("[") && options(suffix);
    take(":");
    lark_item body = choice(0);
    if (is_lazy) {
      lark_item whole, first;
      whole.line = first.line = line;
      whole.parts.push_back(std::move(body));
      for (lark_item& s : suffix) whole.parts.push_back(std::move(s));
      first.what = lark_item::kind::shortest, first.parts.push_back(std::move(whole));
      body = std::move(first);
    }
    auto& table = is_terminal_name(defined) ? out_.terminals : out_.rules;
    if (!table.emplace(defined, std::move(body)).second)
      lark_fault(errc::malformed, line, "'" + defined + "' is defined twice");
    if (!is_terminal_name(defined)) out_.order.push_back(defined);
  }

  // Of a rule or terminal: whether its shortest texts are meant, up to a suffix where there is one.
  bool options(std::vector<lark_item>& suffix) {
    bool is_lazy = false;
    while (!take("]")) {
      const std::string option = name();
      const bool has_value = take("=");
      if (option == "lazy") {
        is_lazy = true;
      } else if (option == "suffix" && has_value) {
        is_lazy = true;
        suffix.push_back(atom(0));
      } else if (option == "capture") {
        if (has_value) ++at_;
      } else {
        fail(errc::unsupported,
             "expected no option of a rule but 'lazy', 'suffix' and 'capture', found '" + option + "' and after it");
      }
      if (!take(",") && !is_mark("]")) fail(errc::malformed, "expected ',' or ']'");
    }
    return is_lazy;
  }

  void directive() {
    const std::string word = tokens_[at_].text;
    if (word == "ignore") {
      ++at_;
      out_.ignored.push_back(choice(0));
    } else if (word == "import") {
      ++at_;
      import();
    } else if (word == "llguidance") {
      at_ += 2;  // how the original goes about it
    } else {
      fail(errc::unsupported, "expected %ignore, %import or %llguidance");
    }
  }

  // %import common.NAME, common.NAME -> OTHER or common (NAME, NAME)
  void import() {
    if (name() != "common") lark_fault(errc::unsupported, now().line, "expected %import common.…");
    const auto one = [&](const std::string& from, const std::string& as) {
      static const lark_grammar common = parser(common_terminals()).parse();
      const auto found = common.terminals.find(from);
      if (found == common.terminals.end())
        lark_fault(errc::not_found, now().line, "there is no terminal common." + from);
      // it may be made of others, which keep out of the way of the grammar's own
      out_.terminals.merge(qualified(common));
      lark_item reference;
      reference.what = lark_item::kind::name, reference.text = "COMMON." + from, reference.line = now().line;
      out_.terminals.insert_or_assign(as, std::move(reference));
    };
    if (take("(")) {
      do {
        const std::string n = name();
        one(n, n);
      } while (take(","));
      if (!take(")")) fail(errc::malformed, "expected ')'");
      return;
    }
    if (!take(".")) fail(errc::malformed, "expected '.'");
    const std::string from = name();
    one(from, take("->") ? name() : from);
  }
  static void qualify(lark_item& item) {
    if (item.what == lark_item::kind::name) item.text = "COMMON." + item.text;
    for (lark_item& part : item.parts) qualify(part);
  }
  static std::map<std::string, lark_item, std::less<>> qualified(const lark_grammar& g) {
    std::map<std::string, lark_item, std::less<>> out;
    for (const auto& [n, item] : g.terminals) qualify(out.emplace("COMMON." + n, item).first->second);
    return out;
  }

  lark_item choice(int depth) {
    if (depth > most_depth) fail(errc::limit, "expected at most 200 groups in each other");
    lark_item e;
    e.what = lark_item::kind::choice, e.line = now().line;
    do e.parts.push_back(conjunction(depth));
    while (take("|"));
    if (e.parts.size() > 1) return e;
    lark_item only = std::move(e.parts.front());
    return only;
  }
  lark_item conjunction(int depth) {
    lark_item e;
    e.what = lark_item::kind::both, e.line = now().line;
    do e.parts.push_back(sequence(depth));
    while (take("&"));
    if (e.parts.size() > 1) return e;
    lark_item only = std::move(e.parts.front());
    return only;
  }
  bool ends() const {
    return now().what == kind::end ||
           (now().what == kind::directive && now().text != "json" && now().text != "regex") || is_mark("|") ||
           is_mark("&") || is_mark(")") || is_mark("]") || is_definition();
  }
  lark_item sequence(int depth) {
    lark_item e;
    e.line = now().line;
    while (!ends()) {
      if (take("->")) {  // a name for trees
        name();
        break;
      }
      e.parts.push_back(repeated(depth));
    }
    return e;
  }
  static lark_item repeat(lark_item part, std::uint32_t least, std::uint32_t most) {
    lark_item e;
    e.what = lark_item::kind::repeat, e.least = least, e.most = most, e.line = part.line;
    e.parts.push_back(std::move(part));
    return e;
  }
  lark_item repeated(int depth) {
    lark_item part = atom(depth);
    for (;;) {
      if (take("*")) {
        part = repeat(std::move(part), 0, unbounded);
      } else if (take("+")) {
        part = repeat(std::move(part), 1, unbounded);
      } else if (is_mark("?") && !is_definition()) {
        ++at_;
        part = repeat(std::move(part), 0, 1);
      } else if (is_mark("~") && now(1).what == kind::number) {
        ++at_;
        const std::uint32_t least = count(), most = take("..") ? count() : least;
        part = counted(std::move(part), least, most);
      } else if (take("{")) {
        const bool has_least = now().what == kind::number;
        const std::uint32_t least = has_least ? count() : 0;
        const std::uint32_t most = !take(",") ? least : now().what == kind::number ? count() : unbounded;
        if (!take("}")) fail(errc::malformed, "expected '}'");
        part = counted(std::move(part), least, most);
      } else {
        return part;
      }
    }
  }
  lark_item counted(lark_item part, std::uint32_t least, std::uint32_t most) {
    if (most < least) fail(errc::malformed, "expected counts in order");
    return repeat(std::move(part), least, most);
  }
  std::uint32_t count() {
    const std::string& text = now().text;
    std::uint32_t n = 0;
    if (now().what != kind::number ||
        std::from_chars(text.data(), text.data() + text.size(), n).ptr != text.data() + text.size())
      fail(errc::malformed, "expected a count");
    if (n > most_repeats) fail(errc::limit, "expected a count of at most " + std::to_string(most_repeats));
    ++at_;
    return n;
  }

  lark_item atom(int depth) {
    lark_item e;
    e.line = now().line;
    if (take("(") || is_mark("[")) {
      const bool is_optional = take("[");
      e = choice(depth + 1);
      if (!take(is_optional ? "]" : ")")) fail(errc::malformed, is_optional ? "expected ']'" : "expected ')'");
      return is_optional ? repeat(std::move(e), 0, 1) : e;
    }
    const lark_token& t = now();
    if (t.what == kind::name) {
      if (is_mark("{", 1) && now(2).what == kind::name) fail(errc::unsupported, "expected a rule without parameters");
      e.what = lark_item::kind::name, e.text = name();
      return e;
    }
    if (t.what == kind::directive && t.text == "json") {
      e.what = lark_item::kind::schema, e.text = now(1).text;
      at_ += 2;
      return e;
    }
    if (t.what == kind::string || t.what == kind::regex) {
      e.what = lark_item::kind::match, e.match = matched();
      return e;
    }
    if (t.what == kind::special) {
      e.what = lark_item::kind::special, e.text = t.text;
      ++at_;
      return e;
    }
    if (t.what == kind::directive && t.text == "regex") {
      e.what = lark_item::kind::match, e.match = lark_substring(now(1).text, t.line);
      at_ += 2;
      return e;
    }
    if (take("~")) {
      if (depth > most_depth) fail(errc::limit, "expected at most 200 groups in each other");
      e.what = lark_item::kind::other;
      e.parts.push_back(atom(depth + 1));
      return e;
    }
    if (is_mark("@")) fail(errc::unsupported, "expected strings, names and groups: other grammars are %json { … }");
    fail(t.what == kind::directive ? errc::unsupported : errc::malformed,
         "expected a string, regular expression, name or group");
  }

  // A string, a range of characters or a regular expression.
  expression matched() {
    const lark_token t = tokens_[at_++];
    if (t.what == kind::string && take("..")) {
      const lark_token last = tokens_[at_];
      const auto first_one = lark_text(t.text, false, t.line), last_one = lark_text(last.text, false, t.line);
      if (last.what != kind::string || first_one.parts.size() != 1 || last_one.parts.size() != 1)
        fail(errc::malformed, "expected a range of two characters");
      ++at_;
      expression e = first_one.parts.front();
      e.characters.front().second = last_one.parts.front().characters.front().first;
      if (e.characters.front().first > e.characters.front().second)
        lark_fault(errc::malformed, t.line, "expected a range of two characters in order");
      return e;
    }
    if (t.what == kind::string) return lark_text(t.text, !t.flags.empty(), t.line);
    if (t.flags.find_first_not_of("ismu") != t.flags.npos)
      lark_fault(errc::unsupported, t.line,
                 "expected the flags i, s, m or u of a regular expression, found '" + t.flags + "'");
    try {
      const std::string flags = t.flags.find('i') != t.flags.npos && t.flags.find('s') != t.flags.npos ? "(?is:"
                                : t.flags.find('i') != t.flags.npos                                    ? "(?i:"
                                : t.flags.find('s') != t.flags.npos                                    ? "(?s:"
                                                                                                       : "";
      return parse_expression(flags.empty() ? t.text : flags + t.text + ")", extent::whole);
    } catch (const error& e) {
      lark_fault(e.code(), t.line, e.message());
    }
  }

  std::vector<lark_token> tokens_;
  std::size_t at_ = 0;
  lark_grammar out_;
};

}  // namespace

void lark_fault(errc code, std::size_t line, const std::string& what) {
  raise(code, "Lark grammar: line " + std::to_string(line) + ": " + what);
}

bool is_terminal_name(std::string_view name) {
  const std::size_t at = name.find_first_not_of('_');
  return at != name.npos && name[at] >= 'A' && name[at] <= 'Z';
}

lark_grammar parse_lark(std::string_view text) { return parser(text).parse(); }

// The terminals of Lark's own library, by what its documentation says of them.
std::string_view common_terminals() {
  return R"(
DIGIT: "0".."9"
HEXDIGIT: "a".."f" | "A".."F" | DIGIT
INT: DIGIT+
SIGNED_INT: ["+" | "-"] INT
DECIMAL: INT "." INT? | "." INT
_EXP: ("e" | "E") SIGNED_INT
FLOAT: INT _EXP | DECIMAL _EXP?
SIGNED_FLOAT: ["+" | "-"] FLOAT
NUMBER: FLOAT | INT
SIGNED_NUMBER: ["+" | "-"] NUMBER
ESCAPED_STRING: /"([^"\\\n]|\\.)*"/
LCASE_LETTER: "a".."z"
UCASE_LETTER: "A".."Z"
LETTER: UCASE_LETTER | LCASE_LETTER
WORD: LETTER+
CNAME: ("_" | LETTER) ("_" | LETTER | DIGIT)*
WS_INLINE: (" " | "\t")+
WS: /[ \t\f\r\n]/+
CR: "\r"
LF: "\n"
NEWLINE: (CR? LF)+
SH_COMMENT: /#[^\n]*/
CPP_COMMENT: /\/\/[^\n]*/
C_COMMENT: /\/\*([^*]|\*+[^*\/])*\*+\//
SQL_COMMENT: /--[^\n]*/
)";
}

}  // namespace kiln::language::guidance

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/regex.hpp"

namespace kiln::language::detail {

namespace {

// Unicode's long names of general categories and POSIX's names of classes; PCRE2 knows the short ones.
constexpr std::pair<std::string_view, std::string_view> property_names[] = {{"letter", "L"},
                                                                            {"uppercaseletter", "Lu"},
                                                                            {"lowercaseletter", "Ll"},
                                                                            {"titlecaseletter", "Lt"},
                                                                            {"casedletter", "L&"},
                                                                            {"modifierletter", "Lm"},
                                                                            {"otherletter", "Lo"},
                                                                            {"mark", "M"},
                                                                            {"combiningmark", "M"},
                                                                            {"nonspacingmark", "Mn"},
                                                                            {"spacingmark", "Mc"},
                                                                            {"enclosingmark", "Me"},
                                                                            {"number", "N"},
                                                                            {"decimalnumber", "Nd"},
                                                                            {"digit", "Nd"},
                                                                            {"letternumber", "Nl"},
                                                                            {"othernumber", "No"},
                                                                            {"punctuation", "P"},
                                                                            {"punct", "P"},
                                                                            {"connectorpunctuation", "Pc"},
                                                                            {"dashpunctuation", "Pd"},
                                                                            {"openpunctuation", "Ps"},
                                                                            {"closepunctuation", "Pe"},
                                                                            {"initialpunctuation", "Pi"},
                                                                            {"finalpunctuation", "Pf"},
                                                                            {"otherpunctuation", "Po"},
                                                                            {"symbol", "S"},
                                                                            {"mathsymbol", "Sm"},
                                                                            {"currencysymbol", "Sc"},
                                                                            {"modifiersymbol", "Sk"},
                                                                            {"othersymbol", "So"},
                                                                            {"separator", "Z"},
                                                                            {"spaceseparator", "Zs"},
                                                                            {"lineseparator", "Zl"},
                                                                            {"paragraphseparator", "Zp"},
                                                                            {"other", "C"},
                                                                            {"control", "Cc"},
                                                                            {"cntrl", "Cc"},
                                                                            {"format", "Cf"},
                                                                            {"unassigned", "Cn"},
                                                                            {"privateuse", "Co"},
                                                                            {"surrogate", "Cs"},
                                                                            {"alpha", "Alphabetic"},
                                                                            {"space", "White_Space"},
                                                                            {"upper", "Uppercase"},
                                                                            {"lower", "Lowercase"},
                                                                            {"any", "Any"}};

// Oniguruma's \w: marks are in it, and numbers that are no digits only below U+0100.
constexpr std::string_view word_items = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";

bool compiles(const std::string& pattern) {
  int code = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                       PCRE2_UTF | PCRE2_UCP, &code, &at, nullptr);
  pcre2_code_free(compiled);
  return compiled != nullptr;
}

// A set of characters: the items between brackets where `expression` is empty, else an expression for one character.
struct character_set {
  std::string items, expression;
  bool negated = false;

  std::string text() const {
    if (!expression.empty()) return negated ? "(?:(?!" + expression + ")(?s:.))" : expression;
    if (items.empty()) return negated ? "(?s:.)" : "(?!)";
    return (negated ? "[^" : "[") + items + "]";
  }
  bool plain() const { return expression.empty() && !negated; }
};

class translation {
 public:
  explicit translation(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    std::string out;
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '[') {
        ++at_;
        out += read_set(0).text();
      } else if (c == '\\') {
        out += read_escape().text();
      } else if (pattern_.substr(at_, 2) == "{,") {
        out += "{0,";
        at_ += 2;
      } else {
        out += c;
        ++at_;
      }
    }
    return out;
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    raise(errc::malformed, "the regular expression \"" + std::string(pattern_) + "\" " + what);
  }

  // After the opening bracket; leaves `at_` after the closing one.
  character_set read_set(int depth) {
    constexpr int deepest = 16;
    if (depth > deepest) fail("nests its classes too deeply");
    character_set whole;
    if (take("^")) whole.negated = true;
    std::vector<character_set> terms;  // of an intersection
    std::vector<character_set> parts;  // of the union that is being read
    std::string items;
    const auto end_term = [&] {
      terms.push_back(united(items, parts));
      items.clear();
      parts.clear();
    };
    for (bool first = true;; first = false) {
      if (at_ >= pattern_.size()) fail("has a class without its end");
      const char c = pattern_[at_];
      if (c == ']' && !first) break;
      if (c == ']') {
        items += "\\]";
        ++at_;
      } else if (pattern_.substr(at_, 2) == "[:") {
        const std::size_t end = pattern_.find(":]", at_);
        if (end == std::string_view::npos) fail("has a class without its end");
        items += pattern_.substr(at_, end + 2 - at_);
        at_ = end + 2;
      } else if (c == '[') {
        ++at_;
        add(items, parts, read_set(depth + 1));
      } else if (take("&&")) {
        end_term();
      } else if (c == '\\') {
        add(items, parts, read_escape(true));
      } else {
        items += c;
        ++at_;
      }
    }
    ++at_;
    end_term();
    if (terms.size() == 1 && terms[0].expression.empty() && !terms[0].negated) {
      whole.items = terms[0].items;
      return whole;
    }
    std::string both = "(?:";
    for (std::size_t t = 0; t + 1 < terms.size(); ++t) both += "(?=" + terms[t].text() + ")";
    whole.expression = both + terms.back().text() + ")";
    return whole;
  }

  static void add(std::string& items, std::vector<character_set>& parts, character_set set) {
    if (set.plain())
      items += set.items;
    else
      parts.push_back(std::move(set));
  }
  static character_set united(const std::string& items, const std::vector<character_set>& parts) {
    character_set out;
    out.items = items;
    if (parts.empty()) return out;
    out.expression = "(?:";
    if (!items.empty()) out.expression += "[" + items + "]|";
    for (std::size_t p = 0; p < parts.size(); ++p) out.expression += (p == 0 ? "" : "|") + parts[p].text();
    out.expression += ")";
    return out;
  }

  // At a backslash. What is no set comes back as an expression, within a class as an item.
  character_set read_escape(bool in_class = false) {
    if (at_ + 1 >= pattern_.size()) fail("ends with a backslash");
    const char c = pattern_[at_ + 1];
    character_set out;
    const auto set_of = [&](std::string_view items, bool negated) {
      at_ += 2;
      out.items = items;
      out.negated = negated;
      return out;
    };
    switch (c) {
      case 's': return set_of("\\p{White_Space}", false);
      case 'S': return set_of("\\P{White_Space}", false);
      case 'w': return set_of(word_items, false);
      case 'W': return set_of(word_items, true);
      case 'h': return set_of("0-9a-fA-F", false);
      case 'H': return set_of("0-9a-fA-F", true);
      case 'p':
      case 'P': return read_property(c == 'P');
      case 'u': {
        const std::string digits(pattern_.substr(at_ + 2, 4));
        if (digits.size() != 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
          fail("has \\u without four digits");
        at_ += 6;
        (in_class ? out.items : out.expression) = "\\x{" + digits + "}";
        return out;
      }
      default: break;
    }
    (in_class ? out.items : out.expression) = std::string(pattern_.substr(at_, 2));
    at_ += 2;
    return out;
  }

  character_set read_property(bool negated) {
    at_ += 2;
    std::string_view name;
    if (take("{")) {
      if (take("^")) negated = !negated;
      const std::size_t end = pattern_.find('}', at_);
      if (end == std::string_view::npos) fail("has a property without its end");
      name = pattern_.substr(at_, end - at_);
      at_ = end + 1;
    } else {
      name = pattern_.substr(at_, 1);
      at_ += name.size();
    }
    character_set out;
    std::string plain;
    for (const char c : name)
      if (c != ' ' && c != '_' && c != '-') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    if (plain == "word" || plain == "alnum") {
      out.items = plain == "word" ? word_items : "\\p{Alphabetic}\\p{Nd}";
      out.negated = negated;
      return out;
    }
    std::string known(name);
    for (const auto& [long_name, short_name] : property_names)
      if (plain == long_name) known = short_name;
    if (known == name) {
      for (const std::string_view prefix : {"script=", "sc="})
        if (plain.starts_with(prefix)) known = known.substr(known.find('=') + 1);
      // a script is the characters' own; PCRE2 would take the scripts that they are used in too
      if (known.size() > 2 && compiles("\\p{sc:" + known + "}")) known = "sc:" + known;
    }
    out.items = (negated ? "\\P{" : "\\p{") + known + "}";
    return out;
  }

  bool take(std::string_view text) {
    if (!pattern_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
};

}  // namespace

std::string to_pcre2_syntax(std::string_view pattern) { return translation(pattern).run(); }

std::string escape_regex(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}-#&~ ").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace kiln::language::detail

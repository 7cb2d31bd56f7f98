#include <charconv>

#include "kiln/core/error.hpp"
#include "kiln/interface/migraphx/operation.hpp"

namespace kiln::migraphx {

namespace {

constexpr std::size_t most_nested = 32;

// A descent over the text.
class reader {
 public:
  explicit reader(std::string_view text) : text_(text) {}

  attributes read_all() {
    skip_space();
    if (at_end()) return attributes::object();
    attributes out = peek() == '{' ? read_object() : read_members('\0');
    skip_space();
    if (!at_end()) refuse("the end");
    return out;
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  void skip_space() {
    while (!at_end() && (peek() == ' ' || (peek() >= '\t' && peek() <= '\r'))) ++at_;
  }
  [[noreturn]] void refuse(const std::string& expected) const {
    const std::string found = at_end() ? "the end" : "'" + std::string(text_.substr(at_, 12)) + "'";
    raise(errc::invalid_argument, "attributes are text such as {axes: [1, 2]}: expected " + expected +
                                      " at character " + std::to_string(at_ + 1) + ", found " + found);
  }
  bool take(char c) {
    skip_space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  attributes read_object() {
    take('{');
    attributes out = read_members('}');
    if (!take('}')) refuse("'}'");
    return out;
  }
  attributes read_members(char close) {
    if (++depth_ > most_nested) refuse("fewer nested values");
    attributes out = attributes::object();
    for (skip_space(); !at_end() && peek() != close; skip_space()) {
      std::string name = peek() == '"' || peek() == '\'' ? read_quoted() : read_word("an attribute's name");
      if (!take(':') && !take('=')) refuse("':'");
      if (out.contains(name)) refuse("each attribute once, not a second '" + name + "'");
      out[name] = read_value();
      if (!take(',')) break;
    }
    --depth_;
    return out;
  }
  attributes read_list() {
    if (++depth_ > most_nested) refuse("fewer nested values");
    take('[');
    attributes out = attributes::array();
    for (skip_space(); peek() != ']'; skip_space()) {
      out.push_back(read_value());
      if (!take(',')) break;
    }
    if (!take(']')) refuse("',' or ']'");
    --depth_;
    return out;
  }
  attributes read_value() {
    skip_space();
    if (peek() == '{') return read_object();
    if (peek() == '[') return read_list();
    if (peek() == '"' || peek() == '\'') return read_quoted();
    return read_scalar();
  }
  attributes read_scalar() {
    const std::size_t from = at_;
    const std::string word = read_word("a value");
    if (word == "true") return true;
    if (word == "false") return false;
    if (word == "null") return nullptr;
    const char *first = word.data(), *last = first + word.size();
    const char* const digits = first + (*first == '+');
    std::int64_t whole = 0;
    if (const auto [end, fault] = std::from_chars(digits, last, whole); end == last && fault == std::errc())
      return whole;
    double real = 0;
    if (const auto [end, fault] = std::from_chars(digits, last, real); end == last) {
      if (fault == std::errc()) return real;
      at_ = from;
      refuse("a number that a double holds");
    }
    if ((word[0] >= '0' && word[0] <= '9') || word[0] == '-' || word[0] == '+') {
      at_ = from;
      refuse("a number");
    }
    return word;
  }
  std::string read_quoted() {
    const char quote = text_[at_++];
    std::string out;
    while (!at_end() && peek() != quote) {
      if (peek() == '\\' && at_ + 1 < text_.size()) ++at_;
      out.push_back(text_[at_++]);
    }
    if (at_end()) refuse("a closing quote");
    ++at_;
    return out;
  }
  std::string read_word(const std::string& what) {
    const std::size_t from = at_;
    constexpr std::string_view ends = " \t\r\n\v\f,:=[]{}\"'";
    while (!at_end() && ends.find(peek()) == ends.npos) ++at_;
    if (at_ == from) refuse(what);
    return std::string(text_.substr(from, at_ - from));
  }

  std::string_view text_;
  std::size_t at_ = 0, depth_ = 0;
};

}  // namespace

attributes parse_attributes(std::string_view text) { return reader(text).read_all(); }

std::string to_string(const operation& op) {
  std::string out = op.name();
  if (op.values().empty()) return out;
  std::string list;
  for (const auto& [name, v] : op.values().items()) {
    list += (list.empty() ? "" : ",") + name + "=";
    list += v.is_string() ? v.get<std::string>() : v.dump();
  }
  return out + "[" + list + "]";
}

}  // namespace kiln::migraphx

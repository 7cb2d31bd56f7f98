#include "kiln/tensorflow/impl/file/text_format.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "kiln/core/error.hpp"
#include "kiln/core/wire_format.hpp"
#include "kiln/tensorflow/impl/file/graph_file.hpp"
#include "kiln/tensorflow/impl/file/text_messages.hpp"

// Text is turned into binary form, which one reader takes apart.
namespace kiln::tensorflow {

namespace {

using namespace text_form;

class text_reader {
 public:
  explicit text_reader(std::string_view text) : text_(text) {}

  std::string message(text_message what) {
    std::string out;
    fields(out, what == text_message::graph ? graph_message : saved_model_message, '\0', 0);
    return out;
  }

 private:
  static constexpr int most_nested = 64;

  [[noreturn]] void refuse(const std::string& why) const {
    std::size_t line = 1;
    for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    raise(errc::malformed, "line " + std::to_string(line) + " of the graph's text: " + why);
  }
  void check_nested(int depth) const {
    if (depth > most_nested) refuse("messages are nested deeper than " + std::to_string(most_nested));
  }
  void skip_space() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#')
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      else if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
        break;
    }
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string_view word() {
    skip_space();
    const std::size_t from = at_;
    const auto is_part = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
             c == '+' || c == '-';
    };
    while (at_ < text_.size() && is_part(text_[at_])) ++at_;
    if (from == at_) refuse(at_ == text_.size() ? "it ends too soon" : std::string("unexpected '") + text_[at_] + "'");
    return text_.substr(from, at_ - from);
  }

  void fields(std::string& out, const description& of, char end, int depth) {
    check_nested(depth);
    for (;;) {
      while (take(',') || take(';')) {
      }
      skip_space();
      if (end == '\0' ? at_ == text_.size() : take(end)) return;
      const std::string_view name = word();
      const field* f = nullptr;
      for (const field& candidate : of.fields)
        if (candidate.name == name) f = &candidate;
      const bool has_colon = take(':');
      if (!f) {
        skip_value(has_colon, depth);
        continue;
      }
      if (take('[')) {  // a short form of repeated fields
        if (take(']')) continue;
        do value(out, *f, depth);
        while (take(','));
        if (!take(']')) refuse("a list without its end");
      } else {
        value(out, *f, depth);
      }
    }
  }
  void value(std::string& out, const field& f, int depth) {
    if (f.is == kind::message) {
      const char end = take('{') ? '}' : take('<') ? '>' : '\0';
      if (!end) refuse("field '" + std::string(f.name) + "' is a message");
      std::string content;
      fields(content, *f.message, end, depth + 1);
      append_field(out, f.number, std::string_view(content));
      return;
    }
    if (f.is == kind::bytes) return append_field(out, f.number, std::string_view(quoted()));
    const std::string_view v = word();
    switch (f.is) {
      case kind::integer: return append_field(out, f.number, integer(v));
      case kind::flag: return append_field(out, f.number, std::uint64_t(flag(v)));
      case kind::type: {
        const std::uint64_t number = v[0] >= '0' && v[0] <= '9' ? integer(v) : type_number(v);
        if (number == 0 && v != "DT_INVALID") refuse("'" + std::string(v) + "' is no element type");
        return append_field(out, f.number, number);
      }
      case kind::f32: {
        const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(real(v)));
        append_varint(out, f.number << 3 | static_cast<std::uint64_t>(wire_encoding::four_bytes));
        out.append(reinterpret_cast<const char*>(&bits), sizeof bits);
        return;
      }
      default: {
        const double bits = real(v);
        append_varint(out, f.number << 3 | static_cast<std::uint64_t>(wire_encoding::eight_bytes));
        out.append(reinterpret_cast<const char*>(&bits), sizeof bits);
      }
    }
  }
  std::uint64_t integer(std::string_view v) const {
    const bool negative = v.starts_with('-');
    const std::string_view digits = v.substr(negative);
    const bool hex = digits.starts_with("0x") || digits.starts_with("0X");
    std::uint64_t n = 0;
    const char* const begin = digits.data() + (hex ? 2 : 0);
    const auto [end, fault] = std::from_chars(begin, digits.data() + digits.size(), n, hex ? 16 : 10);
    if (fault != std::errc() || end != digits.data() + digits.size()) refuse("'" + std::string(v) + "' is no integer");
    return negative ? 0 - n : n;
  }
  bool flag(std::string_view v) const {
    for (const std::string_view yes : {"true", "True", "t", "1"})
      if (v == yes) return true;
    for (const std::string_view no : {"false", "False", "f", "0"})
      if (v == no) return false;
    refuse("'" + std::string(v) + "' is no bool");
  }
  // What protobuf makes of a number that no double holds: infinity, or 0 for one that is too small.
  static double out_of_range(std::string_view digits) {
    const std::size_t e = std::min(digits.find_first_of("eE"), digits.size());
    const std::string_view mantissa = digits.substr(0, e), exponent = digits.substr(std::min(e + 1, digits.size()));
    const auto point = static_cast<std::int64_t>(std::min(mantissa.find('.'), mantissa.size()));
    const std::size_t digit = mantissa.find_first_of("123456789");
    if (digit == std::string_view::npos) return 0;
    const auto first = static_cast<std::int64_t>(digit);
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    std::int64_t power = 0;
    const bool has_plus = exponent.starts_with('+');
    const auto read = std::from_chars(exponent.data() + has_plus, exponent.data() + exponent.size(), power);
    if (read.ec == std::errc::result_out_of_range) power = exponent.starts_with('-') ? -most : most;
    power = std::clamp(power, -most, most);
    return point - first + power > 0 ? std::numeric_limits<double>::infinity() : 0;
  }
  double real(std::string_view v) const {
    const bool negative = v.starts_with('-');
    std::string_view digits = v.substr(negative);
    if (digits.size() > 1 && (digits.back() == 'f' || digits.back() == 'F') && digits.find_first_of("in") != 0)
      digits.remove_suffix(1);
    double n = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    const bool is_number = fault == std::errc() || fault == std::errc::result_out_of_range;
    if (!is_number || end != digits.data() + digits.size()) refuse("'" + std::string(v) + "' is no number");
    if (fault != std::errc()) n = out_of_range(digits);
    return negative ? -n : n;
  }
  // One or more strings, which are one.
  std::string quoted() {
    std::string out;
    bool any = false;
    for (;; any = true) {
      skip_space();
      const char quote = at_ < text_.size() ? text_[at_] : '\0';
      if (quote != '"' && quote != '\'') break;
      for (++at_;; ++at_) {
        if (at_ >= text_.size() || text_[at_] == '\n') refuse("a string without its end");
        if (text_[at_] == quote) break;
        if (text_[at_] == '\\')
          escaped(out);
        else
          out += text_[at_];
      }
      ++at_;
    }
    if (!any) refuse("a string is expected");
    return out;
  }
  // At a backslash; leaves at the last character of the sequence.
  void escaped(std::string& out) {
    if (++at_ >= text_.size()) refuse("a string without its end");
    const char c = text_[at_];
    const auto digit = [&](std::size_t i, int base) {
      if (i >= text_.size()) return -1;
      const char d = text_[i];
      const int n = d >= '0' && d <= '9'   ? d - '0'
                    : d >= 'a' && d <= 'f' ? d - 'a' + 10
                    : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                           : 99;
      return n < base ? n : -1;
    };
    const auto number = [&](std::size_t most, int base) {
      int n = 0;
      std::size_t used = 0;
      for (; used < most && digit(at_ + used, base) >= 0; ++used) n = n * base + digit(at_ + used, base);
      if (used == 0) refuse("an escape without digits");
      at_ += used - 1;
      out += static_cast<char>(n);
    };
    if (digit(at_, 8) >= 0) return number(3, 8);
    if (c == 'x' || c == 'X') return ++at_, number(2, 16);
    constexpr std::string_view names = "abfnrtv\\'\"?", values = "\a\b\f\n\r\t\v\\'\"?";
    const std::size_t found = names.find(c);
    if (found == std::string_view::npos) refuse(std::string("the escape \\") + c + " is unknown");
    out += values[found];
  }
  // The value of a field that is not read.
  void skip_value(bool has_colon, int depth) {
    check_nested(depth);
    if (take('{')) return skip_message('}', depth + 1);
    if (take('<')) return skip_message('>', depth + 1);
    if (!has_colon) refuse("a field has a value");
    if (take('[')) {
      if (take(']')) return;
      do skip_value(true, depth + 1);
      while (take(','));
      if (!take(']')) refuse("a list without its end");
      return;
    }
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\''))
      quoted();
    else
      word();
  }
  void skip_message(char end, int depth) {
    for (;;) {
      while (take(',') || take(';')) {
      }
      if (take(end)) return;
      word();
      skip_value(take(':'), depth);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string binary_of_text(std::string_view text, text_message what) { return text_reader(text).message(what); }

buffer binary_form(const buffer& file, text_message what) {
  const bytes_view bytes(file.data(), file.size());
  if (!begins_as_text(bytes)) return file;
  const std::string binary = binary_of_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, what);
  buffer out = buffer::allocate(binary.size());
  std::memcpy(out.data(), binary.data(), binary.size());
  return out;
}

}  // namespace kiln::tensorflow

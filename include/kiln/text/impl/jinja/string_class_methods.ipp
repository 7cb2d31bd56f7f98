#include "kiln/text/impl/jinja/interpreter.hpp"
#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

using in_t = interpreter;

// Whether there are characters, all of a class.
template <bool (*is_one)(std::uint32_t)> value all_are(in_t&, const value& self, const bound&) {
  const std::string& text = self.bytes();
  for (std::size_t at = 0; at < text.size();)
    if (!is_one(next_point(text, at))) return false;
  return !text.empty();
}

bool is_alphanumeric(std::uint32_t p) { return is_alphabetic(p) || is_decimal(p) || is_digit(p) || is_numeric(p); }
bool is_ascii_point(std::uint32_t p) { return p < 128; }

// Whether there are letters with case, none of the other case.
template <bool (*is_one)(std::uint32_t), bool (*is_other)(std::uint32_t)>
value all_cased(in_t&, const value& self, const bound&) {
  const std::string& text = self.bytes();
  bool found = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t p = next_point(text, at);
    if (is_other(p)) return false;
    found = found || is_one(p);
  }
  return found;
}

value is_title(in_t&, const value& self, const bound&) {
  const std::string& text = self.bytes();
  bool found = false, in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t p = next_point(text, at);
    if ((is_upper(p) && in_word) || (is_lower(p) && !in_word)) return false;
    in_word = is_upper(p) || is_lower(p);
    found = found || in_word;
  }
  return found;
}

value is_identifier(in_t&, const value& self, const bound&) {
  const std::string& text = self.bytes();
  for (std::size_t at = 0; at < text.size();) {
    const bool is_first = at == 0;
    const std::uint32_t p = next_point(text, at);
    if (is_first ? !is_name_begin(p) : !is_name_rest(p)) return false;
  }
  return !text.empty();
}

value is_ascii(in_t& in, const value& self, const bound& a) {
  return self.bytes().empty() ? value(true) : all_are<is_ascii_point>(in, self, a);
}

constexpr native rows[] = {
    {"isdigit", "", all_are<is_digit>},
    {"isdecimal", "", all_are<is_decimal>},
    {"isnumeric", "", all_are<is_numeric>},
    {"isalpha", "", all_are<is_alphabetic>},
    {"isalnum", "", all_are<is_alphanumeric>},
    {"isspace", "", all_are<is_space>},
    {"isascii", "", is_ascii},
    {"isupper", "", all_cased<is_upper, is_lower>},
    {"islower", "", all_cased<is_lower, is_upper>},
    {"istitle", "", is_title},
    {"isidentifier", "", is_identifier},
};

}  // namespace

std::span<const native> string_class_methods() { return rows; }

}  // namespace kiln::language::jinja

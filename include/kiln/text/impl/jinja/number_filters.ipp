#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "kiln/text/impl/jinja/interpreter.hpp"
#include "kiln/text/impl/jinja/operators.hpp"
#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

using in_t = interpreter;

// Python's int() and float() of a text: white space around and single underscores between digits are allowed.
std::string digits_of(std::string_view text) {
  std::string out;
  text = strip(text, true, true);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const auto is_alnum = [](char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); };
    if (i == 0 || i + 1 == text.size() || !is_alnum(text[i - 1]) || !is_alnum(text[i + 1])) return {};
  }
  return out;
}

std::optional<std::int64_t> whole_of(std::string_view text, std::int64_t base) {
  std::string digits = digits_of(text);
  const bool is_negative = digits.starts_with('-');
  if (is_negative || digits.starts_with('+')) digits.erase(0, 1);
  const char mark = digits.size() > 2 && digits[0] == '0' ? static_cast<char>(digits[1] | 32) : '\0';
  const std::int64_t marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
  if (marked != 0 && (base == marked || base == 0)) digits.erase(0, 2), base = marked;
  if (base == 0) base = 10;
  if (base < 2 || base > 36 || digits.starts_with('-')) return std::nullopt;
  if (is_negative) digits.insert(0, 1, '-');
  std::int64_t n = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), n, static_cast<int>(base));
  if (failed == std::errc::result_out_of_range) fail("an integer goes beyond 64 bits");
  if (failed != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return n;
}

std::optional<double> real_of(std::string_view text) {
  std::string digits = digits_of(text);
  if (digits.find_first_of("xXpP(") != digits.npos) return std::nullopt;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.erase(0, 1);
  double d = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), d);
  if (end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  if (failed == std::errc::result_out_of_range) return std::strtod(digits.c_str(), nullptr);
  if (failed != std::errc()) return std::nullopt;
  return d;
}

std::optional<std::int64_t> whole_of(double d) {
  if (std::isnan(d)) return std::nullopt;
  if (!(std::fabs(d) < 9.2e18)) fail("an integer goes beyond 64 bits");
  return static_cast<std::int64_t>(d);
}

value to_int(in_t&, const value& v, const bound& a) {
  if (v.is(kind::undefined)) fail_undefined(v);
  std::optional<std::int64_t> n;
  if (v.is_whole()) n = v.integer();
  if (v.is(kind::real)) n = whole_of(v.real());
  if (v.is(kind::string)) {
    n = whole_of(v.bytes(), a.integer(1, 10));
    if (!n)
      if (const auto d = real_of(v.bytes())) n = whole_of(*d);
  }
  return n ? value(*n) : a.get(0, value(std::int64_t{0}));
}

value to_float(in_t&, const value& v, const bound& a) {
  if (v.is(kind::undefined)) fail_undefined(v);
  if (v.is_number()) return v.real();
  if (v.is(kind::string))
    if (const auto d = real_of(v.bytes())) return *d;
  return a.get(0, value(0.0));
}

value absolute(in_t&, const value& v, const bound&) {
  if (v.is(kind::undefined)) fail_undefined(v);
  if (!v.is_number()) fail("abs: expected a number, found '" + std::string(type_name(v)) + "'");
  if (v.is(kind::real)) return std::fabs(v.real());
  return v.integer() < 0 ? negate(v) : value(v.integer());
}

// Halves go to the even digit, decided on the exact binary value as in Python.
double round_half_even(double d, std::int64_t digits) {
  if (!std::isfinite(d) || digits > 300) return d;
  if (digits < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-digits));
    return std::isinf(scale) ? 0.0 * d : std::nearbyint(d / scale) * scale;
  }
  char room[700];
  std::snprintf(room, sizeof room, "%.*f", static_cast<int>(digits), d);
  return std::strtod(room, nullptr);
}

value round(in_t&, const value& v, const bound& a) {
  if (v.is(kind::undefined)) fail_undefined(v);
  if (!v.is_number()) fail("round: expected a number, found '" + std::string(type_name(v)) + "'");
  const std::int64_t digits = a.integer(0, 0);
  const std::string method = a.has(1) ? a.text(1) : "common";
  if (method == "common") {
    if (v.is_whole() && digits >= 0) return value(v.integer());
    const double rounded = round_half_even(v.real(), digits);
    return v.is_whole() ? value(static_cast<std::int64_t>(rounded)) : value(rounded);
  }
  if (method != "ceil" && method != "floor")
    fail("round: expected the method common, ceil or floor, found '" + method + "'");
  const double scale = std::pow(10.0, static_cast<double>(digits));
  return (method == "ceil" ? std::ceil(v.real() * scale) : std::floor(v.real() * scale)) / scale;
}

constexpr native rows[] = {
    {"int", "default? base?", to_int},
    {"float", "default?", to_float},
    {"abs", "", absolute},
    {"round", "precision? method?", round},
};

}  // namespace

std::span<const native> number_filters() { return rows; }

}  // namespace kiln::language::jinja

#include <algorithm>

#include "kiln/text/impl/jinja/interpreter.hpp"
#include "kiln/text/impl/jinja/operators.hpp"
#include "kiln/text/impl/jinja/text_tools.hpp"
#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

using in_t = interpreter;

template <bool left, bool right> value strip_ends(in_t& in, const value& self, const bound& a) {
  const bool by_default = !a.has(0) || a[0].is(kind::none);
  return in.text(
      std::string(by_default ? strip(self.bytes(), left, right) : strip(self.bytes(), a.text(0), left, right)));
}

template <std::string (*map)(std::string_view)> value mapped(in_t& in, const value& self, const bound&) {
  return in.text(map(self.bytes()));
}

// The part of the text between two optional bounds in points, and where it begins.
std::string part_of(in_t& in, const value& self, const bound& a, std::size_t& begin_point) {
  const auto size = static_cast<std::int64_t>(self.str().points);
  std::int64_t begin = a.integer(1, 0), end = a.integer(2, size);
  if (begin < 0) begin = std::max<std::int64_t>(begin + size, 0);
  if (end < 0) end = std::max<std::int64_t>(end + size, 0);
  begin_point = static_cast<std::size_t>(begin);
  return slice(in, self, value(begin), value(end), value::none()).bytes();
}

template <bool at_begin> value begins_or_ends(in_t& in, const value& self, const bound& a) {
  std::size_t begin = 0;
  const std::string part = part_of(in, self, a, begin);
  if (begin > self.str().points) return false;
  const auto fits = [&](const value& v) {
    if (!v.is(kind::string)) fail("expected a string or a tuple of strings, found '" + std::string(type_name(v)) + "'");
    return at_begin ? part.starts_with(v.bytes()) : part.ends_with(v.bytes());
  };
  if (!a[0].is(kind::list)) return fits(a[0]);
  const auto& all = a[0].list()->items;
  return std::any_of(all.begin(), all.end(), fits);
}

template <bool from_right, bool throws> value find(in_t& in, const value& self, const bound& a) {
  std::size_t begin = 0;
  const std::string part = part_of(in, self, a, begin);
  const std::size_t at = from_right ? part.rfind(a.text(0)) : part.find(a.text(0));
  if (at == part.npos || begin > self.str().points) {
    if (throws) fail("substring not found");
    return std::int64_t{-1};
  }
  return static_cast<std::int64_t>(begin + count_points(std::string_view(part).substr(0, at)));
}

value count(in_t& in, const value& self, const bound& a) {
  std::size_t begin = 0, n = 0;
  const std::string part = part_of(in, self, a, begin);
  const std::string& what = a.text(0);
  if (begin > self.str().points) return std::int64_t{0};
  if (what.empty()) return static_cast<std::int64_t>(count_points(part) + 1);
  for (std::size_t at = part.find(what); at != part.npos; at = part.find(what, at + what.size())) ++n;
  return static_cast<std::int64_t>(n);
}

value replace(in_t& in, const value& self, const bound& a) {
  in.step(self.bytes().size() / 16);
  return in.text(replaced(self.bytes(), a.text(0), a.text(1), a.integer(2, -1)));
}

value join(in_t& in, const value& self, const bound& a) {
  std::string out;
  bool is_first = true;
  for (const value& v : in.items_of(a[0])) {
    if (!v.is(kind::string)) fail("join(): expected strings, found '" + std::string(type_name(v)) + "'");
    if (!is_first) out += self.bytes();
    is_first = false;
    out += v.bytes();
    check_size(out.size());
  }
  return in.text(std::move(out));
}

// Spaces, or another fill, up to a width: -1 before, 1 after the text, 0 on both sides.
template <int side> value justify(in_t& in, const value& self, const bound& a) {
  const std::string fill = a.has(1) ? a.text(1) : " ";
  if (count_points(fill) != 1) fail("expected one character to fill with");
  const std::int64_t lacks = std::max<std::int64_t>(a.integer(0, 0) - static_cast<std::int64_t>(self.str().points), 0);
  in.values.charge(static_cast<std::size_t>(lacks) * fill.size());
  // an odd space goes left where the width is odd, as in Python
  const std::int64_t left = side < 0 ? lacks : side > 0 ? 0 : lacks / 2 + (lacks & a.integer(0, 0) & 1);
  std::string out;
  for (std::int64_t i = 0; i < left; ++i) out += fill;
  out += self.bytes();
  for (std::int64_t i = left; i < lacks; ++i) out += fill;
  return in.text(std::move(out));
}

value zfill(in_t& in, const value& self, const bound& a) {
  const std::string& text = self.bytes();
  const std::int64_t lacks = std::max<std::int64_t>(a.integer(0, 0) - static_cast<std::int64_t>(self.str().points), 0);
  in.values.charge(static_cast<std::size_t>(lacks));
  const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  return in.text(text.substr(0, sign) + std::string(static_cast<std::size_t>(lacks), '0') + text.substr(sign));
}

value without_prefix(in_t& in, const value& self, const bound& a) {
  if (!self.bytes().starts_with(a.text(0))) return self;
  return in.text(self.bytes().substr(a.text(0).size()));
}

value without_suffix(in_t& in, const value& self, const bound& a) {
  if (!self.bytes().ends_with(a.text(0))) return self;
  return in.text(self.bytes().substr(0, self.bytes().size() - a.text(0).size()));
}

value format(in_t& in, const value& self, const bound& a) { return in.text(format_braces(in, self.bytes(), a.all())); }

constexpr native rows[] = {
    {"strip", "chars?", strip_ends<true, true>},
    {"lstrip", "chars?", strip_ends<true, false>},
    {"rstrip", "chars?", strip_ends<false, true>},
    {"upper", "", mapped<upper>},
    {"lower", "", mapped<lower>},
    {"casefold", "", mapped<fold_case>},
    {"title", "", mapped<title>},
    {"capitalize", "", mapped<capitalize>},
    {"swapcase", "", mapped<swapcase>},
    {"startswith", "prefix start? end?", begins_or_ends<true>},
    {"endswith", "suffix start? end?", begins_or_ends<false>},
    {"find", "sub start? end?", find<false, false>},
    {"rfind", "sub start? end?", find<true, false>},
    {"index", "sub start? end?", find<false, true>},
    {"rindex", "sub start? end?", find<true, true>},
    {"count", "sub start? end?", count},
    {"replace", "old new count?", replace},
    {"join", "iterable", join},
    {"center", "width fillchar?", justify<0>},
    {"ljust", "width fillchar?", justify<1>},
    {"rjust", "width fillchar?", justify<-1>},
    {"zfill", "width", zfill},
    {"removeprefix", "prefix", without_prefix},
    {"removesuffix", "suffix", without_suffix},
    {"format", "*", format},
};

}  // namespace

std::span<const native> string_methods() { return rows; }

}  // namespace kiln::language::jinja

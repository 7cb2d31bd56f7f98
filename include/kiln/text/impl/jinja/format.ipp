#include <charconv>
#include <cmath>
#include <cstdio>

#include "kiln/text/impl/jinja/operators.hpp"
#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

// The parts that both ways of formatting have: [[fill]align][sign][#][0][width][,][.precision][type].
struct spec {
  std::string fill = " ";
  char align = '\0', sign = '-', type = '\0', group = '\0';
  bool has_prefix = false;
  std::int64_t width = 0, precision = -1;
};

constexpr std::int64_t most_width = 1 << 20;

std::int64_t number_at(std::string_view text, std::size_t& at, std::int64_t otherwise) {
  std::int64_t n = otherwise;
  const auto [end, failed] = std::from_chars(text.data() + at, text.data() + text.size(), n);
  if (failed == std::errc::invalid_argument) return otherwise;
  if (failed != std::errc() || n > most_width)
    raise(errc::limit, "a format's width is at most " + std::to_string(most_width));
  at = static_cast<std::size_t>(end - text.data());
  return n;
}

std::string padded(const spec& s, std::string text, char align) {
  const auto points = static_cast<std::int64_t>(count_points(text));
  if (points >= s.width) return text;
  const std::int64_t n = s.width - points, left = align == '<' ? 0 : align == '^' ? n / 2 : n;
  const auto fill = [&](std::int64_t times) {
    std::string out;
    for (; times > 0; --times) out += s.fill;
    return out;
  };
  if (align == '=') {  // after the sign
    const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+' || text[0] == ' ') ? 1 : 0;
    const std::size_t prefix =
        s.has_prefix && sign + 1 < text.size() && text[sign] == '0' && text[sign + 1] > '9' ? 2 : 0;
    return text.substr(0, sign + prefix) + fill(n) + text.substr(sign + prefix);
  }
  return fill(left) + text + fill(n - left);
}

std::string with_groups(std::string digits, char group) {
  if (group == '\0') return digits;
  std::size_t end = digits.find_first_not_of("0123456789");
  if (end == digits.npos) end = digits.size();
  for (std::size_t i = end; i > 3;) digits.insert(i -= 3, 1, group);
  return digits;
}

std::string with_sign(const spec& s, bool is_negative, std::string magnitude) {
  if (is_negative) return "-" + magnitude;
  return s.sign == '+' || s.sign == ' ' ? s.sign + magnitude : magnitude;
}

std::string format_real(const spec& s, double d) {
  const double magnitude = std::fabs(d);
  std::string digits;
  if (std::isnan(d) || std::isinf(d)) {
    digits = std::isnan(d) ? "nan" : "inf";
  } else if (s.type == '\0' && s.precision < 0) {
    digits = repr(magnitude);
  } else {
    const char type = s.type == '%' ? 'f' : s.type == '\0' || s.type == 'n' ? 'g' : s.type;
    const char pattern[] = {
        '%', s.has_prefix ? '#' : '.', s.has_prefix ? '.' : '*', s.has_prefix ? '*' : type, s.has_prefix ? type : '\0',
        '\0'};
    const int precision = static_cast<int>(s.precision < 0 ? 6 : s.precision);
    const double scaled = s.type == '%' ? magnitude * 100 : magnitude;
    const int n = std::snprintf(nullptr, 0, pattern, precision, scaled);
    digits.resize(static_cast<std::size_t>(n) + 1);
    std::snprintf(digits.data(), digits.size(), pattern, precision, scaled);
    digits.pop_back();
    if (s.type == '%') digits += '%';
    if (s.type == '\0' && digits.find_first_of(".en") == digits.npos) digits += ".0";
  }
  return with_sign(s, std::signbit(d) && !std::isnan(d), with_groups(std::move(digits), s.group));
}

std::string format_whole(const spec& s, std::int64_t i) {
  const int base = s.type == 'x' || s.type == 'X' ? 16 : s.type == 'o' ? 8 : s.type == 'b' ? 2 : 10;
  char room[70];
  const std::uint64_t magnitude = i < 0 ? 0 - static_cast<std::uint64_t>(i) : static_cast<std::uint64_t>(i);
  std::string digits(room, std::to_chars(room, room + sizeof room, magnitude, base).ptr);
  if (s.type == 'X') digits = upper(digits);
  if (s.has_prefix && base != 10) digits = std::string("0") + s.type + digits;
  if (base == 10) digits = with_groups(std::move(digits), s.group);
  return with_sign(s, i < 0, std::move(digits));
}

std::string cut(const std::string& text, std::int64_t points) {
  if (points < 0) return text;
  std::size_t at = 0;
  for (; points > 0 && at < text.size(); --points) at = after_point(text, at);
  return text.substr(0, at);
}

std::string format_value(const value& v, std::string_view text) {
  spec s;
  std::size_t at = 0;
  const std::size_t first = text.empty() ? 0 : after_point(text, 0);
  const auto is_align = [&](std::size_t i) {
    return i < text.size() && std::string_view("<>=^").find(text[i]) != std::string_view::npos;
  };
  if (is_align(first) && first > 0)
    s.fill = text.substr(0, first), s.align = text[first], at = first + 1;
  else if (is_align(0))
    s.align = text[at++];
  const auto skip = [&](char c) { return at < text.size() && text[at] == c && (++at, true); };
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' ')) s.sign = text[at++];
  s.has_prefix = skip('#');
  if (at < text.size() && text[at] == '0' && s.align == '\0') s.fill = "0", s.align = '=', ++at;
  s.width = number_at(text, at, 0);
  if (skip(',')) s.group = ',';
  if (skip('_')) s.group = '_';
  if (skip('.')) {
    s.precision = number_at(text, at, -1);
    if (s.precision < 0) fail("expected digits after '.' in the format '" + std::string(text) + "'");
  }
  if (at < text.size()) s.type = text[at++];
  if (at != text.size()) fail("invalid format '" + std::string(text) + "'");
  const bool is_real_type = s.type != '\0' && std::string_view("eEfFgG%").find(s.type) != std::string_view::npos;
  const bool is_whole_type = s.type != '\0' && std::string_view("bdnoxX").find(s.type) != std::string_view::npos;
  if (v.is(kind::real) && (s.type == '\0' || is_real_type))
    return padded(s, format_real(s, v.real()), s.align ? s.align : '>');
  if (v.is_whole() && is_real_type) return padded(s, format_real(s, v.real()), s.align ? s.align : '>');
  if ((v.is(kind::integer) && s.type == '\0' && s.precision < 0) || (v.is_whole() && is_whole_type))
    return padded(s, format_whole(s, v.integer()), s.align ? s.align : '>');
  const bool is_text = v.is(kind::string) || (v.is(kind::boolean) && text.empty());
  if ((!is_text && !text.empty()) || (s.type != '\0' && s.type != 's') || s.align == '=')
    fail("'" + std::string(type_name(v)) + "' has no format '" + std::string(text) + "'");
  return padded(s, cut(to_text(v), s.precision), s.align ? s.align : '<');
}

std::string percent_value(const value& v, spec s) {
  switch (s.type) {
    case 's': return padded(s, cut(to_text(v), s.precision), s.align);
    case 'r': return padded(s, cut(repr(v), s.precision), s.align);
    case 'c':
      if (v.is(kind::string) && v.str().points == 1) return padded(s, v.bytes(), s.align);
      if (v.is_whole()) {
        std::string one;
        append_point(one, static_cast<std::uint32_t>(v.integer()));
        return padded(s, one, s.align);
      }
      break;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      if (v.is(kind::real) && s.type != 'x' && s.type != 'X' && s.type != 'o' && std::fabs(v.real()) < 9e18)
        return padded(s, format_whole(s, static_cast<std::int64_t>(v.real())), s.align);
      if (!v.is_whole()) break;
      return padded(s, format_whole(s, v.integer()), s.align);
    default:
      if (!v.is_number()) break;
      return padded(s, format_real(s, v.real()), s.align);
  }
  fail(std::string("%") + s.type + " format: a number is required, found '" + std::string(type_name(v)) + "'");
}

}  // namespace

std::string format_percent(interpreter&, const std::string& text, const value& values) {
  const bool is_tuple = values.is(kind::list) && values.list()->as == list_object::form::tuple;
  const std::vector<value> all = is_tuple ? values.list()->items : std::vector<value>{values};
  std::size_t used = 0;
  bool by_name = false;
  const auto next = [&]() -> const value& {
    if (used >= all.size()) fail("not enough arguments for the format string");
    return all[used++];
  };
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '%') {
      out += text[at++];
      continue;
    }
    ++at;
    spec s;
    s.align = '>';
    value named;
    bool has_name = false;
    if (at < text.size() && text[at] == '(') {
      const std::size_t end = text.find(')', at);
      if (end == text.npos || !values.is(kind::dict)) fail("a format with names needs a dict, and ')' after each name");
      const std::string name = text.substr(at + 1, end - at - 1);
      const value* v = values.dict()->find(name);
      if (!v) fail("the format's name '" + name + "' is no key of the dict");
      named = *v, has_name = by_name = true;
      at = end + 1;
    }
    bool is_left = false;
    for (; at < text.size() && std::string_view("-+ #0").find(text[at]) != std::string_view::npos; ++at) {
      if (text[at] == '-') is_left = true;
      if (text[at] == '+' || (text[at] == ' ' && s.sign != '+')) s.sign = text[at];
      if (text[at] == '#') s.has_prefix = true;
      if (text[at] == '0') s.fill = "0", s.align = '=';
    }
    if (is_left) s.align = '<', s.fill = " ";
    if (at < text.size() && text[at] == '*') {
      const value& width = next();
      s.width = width.is_whole() ? std::min(width.integer(), most_width) : 0, ++at;
    } else {
      s.width = number_at(text, at, 0);
    }
    if (at < text.size() && text[at] == '.') s.precision = number_at(text, ++at, 0);
    if (at < text.size() && text[at] == 'l') ++at;
    if (at == text.size()) fail("incomplete format");
    s.type = text[at++];
    if (s.type == '%') {
      out += '%';
      continue;
    }
    if (std::string_view("srcdiuxXoeEfFgG").find(s.type) == std::string_view::npos)
      fail(std::string("unsupported format character '") + s.type + "'");
    if (s.type == 's' || s.type == 'r' || s.type == 'c') {
      s.fill = " ";
      if (s.align == '=') s.align = '>';
    }
    out += percent_value(has_name ? named : next(), s);
  }
  if (used < all.size() && !by_name && !values.is(kind::dict)) fail("not all arguments are used by the format string");
  return out;
}

std::string format_braces(interpreter& in, const std::string& text, const arguments& a) {
  std::string out;
  std::size_t automatic = 0;
  const auto argument = [&](std::string_view name) -> value {
    std::size_t n = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), n);
    if (name.empty()) n = automatic++;
    if (name.empty() || (failed == std::errc() && end == name.data() + name.size())) {
      if (n >= a.positional.size()) fail("the format has more fields than there are arguments");
      return a.positional[n];
    }
    for (const auto& [named, v] : a.named)
      if (named == name) return v;
    fail("the format's field '" + std::string(name) + "' has no argument");
  };
  const auto field = [&](std::string_view path) {
    std::size_t at = std::min(path.find_first_of(".["), path.size());
    value v = argument(path.substr(0, at));
    while (at < path.size()) {
      const bool is_item = path[at] == '[';
      const std::size_t end = is_item ? path.find(']', at) : std::min(path.find_first_of(".[", at + 1), path.size());
      if (end == path.npos) fail("expected ']' in a format's field");
      const std::string name(path.substr(at + 1, end - at - 1));
      v = is_item ? in.item_by_path(v, in.text(name)) : in.attribute(v, name);
      at = is_item ? end + 1 : end;
    }
    return v;
  };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if ((c == '{' || c == '}') && at < text.size() && text[at] == c) {
      out += c, ++at;
    } else if (c == '{') {
      const std::size_t end = text.find('}', at);
      if (end == text.npos) fail("expected '}' before the end of the format string");
      std::string inside = text.substr(at, end - at), style;
      const std::size_t colon = inside.find(':');
      if (colon != inside.npos) style = inside.substr(colon + 1), inside.resize(colon);
      if (style.find('{') != style.npos) fail("fields inside a format's field are not supported");
      char conversion = '\0';
      if (inside.size() > 1 && inside[inside.size() - 2] == '!')
        conversion = inside.back(), inside.resize(inside.size() - 2);
      value v = field(inside);
      if (conversion == 'r') v = in.text(repr(v));
      if (conversion == 's') v = in.text(to_text(v));
      out += format_value(v, style);
      at = end + 1;
    } else if (c == '}') {
      fail("single '}' in the format string");
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace kiln::language::jinja

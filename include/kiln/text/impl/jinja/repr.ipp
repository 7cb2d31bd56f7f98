#include <charconv>
#include <cmath>
#include <cstdio>

#include "kiln/text/impl/jinja/unicode.hpp"
#include "kiln/text/impl/jinja/value.hpp"

namespace kiln::language::jinja {
namespace {

// Python's quotes: single ones, double ones where the text has single ones alone.
std::string quoted(std::string_view text) {
  const bool has_single = text.find('\'') != text.npos;
  const char quote = has_single && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::uint32_t point = next_point(text, at);
    char room[16];
    if (point == static_cast<unsigned char>(quote) || point == '\\')
      (out += '\\') += static_cast<char>(point);
    else if (point == '\n')
      out += "\\n";
    else if (point == '\t')
      out += "\\t";
    else if (point == '\r')
      out += "\\r";
    else if (is_printable(point))
      out.append(text, begin, at - begin);
    else
      out.append(room, static_cast<std::size_t>(std::snprintf(room, sizeof room,
                                                              point < 256     ? "\\x%02x"
                                                              : point < 65536 ? "\\u%04x"
                                                                              : "\\U%08x",
                                                              point)));
  }
  return out += quote;
}

std::string joined(const std::vector<value>& items, int depth) {
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    out += repr(items[i], depth);
    check_size(out.size());
  }
  return out;
}

std::string repr_of_range(const std::vector<value>& items) {
  if (items.empty()) return "range(0, 0)";
  const std::int64_t first = items[0].integer(), step = items.size() > 1 ? items[1].integer() - first : 1;
  const std::string ends = "range(" + std::to_string(first) + ", " + std::to_string(items.back().integer() + step);
  return ends + (step == 1 ? ")" : ", " + std::to_string(step) + ")");
}

std::string repr_of_list(const list_object& l, int depth) {
  using form = list_object::form;
  switch (l.as) {
    case form::tuple: return "(" + joined(l.items, depth) + (l.items.size() == 1 ? ",)" : ")");
    case form::keys: return "dict_keys([" + joined(l.items, depth) + "])";
    case form::values: return "dict_values([" + joined(l.items, depth) + "])";
    case form::items: return "dict_items([" + joined(l.items, depth) + "])";
    case form::range: return repr_of_range(l.items);
    default: return "[" + joined(l.items, depth) + "]";
  }
}

}  // namespace

std::string repr(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char room[64];
  const char* end = std::to_chars(room, room + sizeof room, d, std::chars_format::scientific).ptr;
  const std::string_view whole(room, static_cast<std::size_t>(end - room));
  const std::size_t e = whole.find('e');
  int exponent = 0;
  std::from_chars(whole[e + 1] == '+' ? &whole[e + 2] : &whole[e + 1], end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(whole);  // C and Python write the exponent alike
  std::string out = whole[0] == '-' ? "-" : "", digits;
  for (const char c : whole.substr(0, e))
    if (c >= '0' && c <= '9') digits += c;
  if (exponent < 0) return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto before = static_cast<std::size_t>(exponent + 1);
  if (digits.size() <= before) return out + digits + std::string(before - digits.size(), '0') + ".0";
  return out + digits.substr(0, before) + "." + digits.substr(before);
}

std::string repr(const value& v, int depth) {
  if (depth > most_nesting)
    raise(errc::limit, "lists and dicts that are printed nest at most " + std::to_string(most_nesting) + " deep");
  switch (v.type()) {
    case kind::undefined: return "Undefined";
    case kind::none: return "None";
    case kind::boolean: return v.integer() ? "True" : "False";
    case kind::integer: return std::to_string(v.integer());
    case kind::real: return repr(v.real());
    case kind::string: return quoted(v.bytes());
    case kind::list: return repr_of_list(*v.list(), depth + 1);
    case kind::dict: {
      std::string out = "{";
      for (const auto& [key, item] : v.dict()->entries) {
        if (out.size() > 1) out += ", ";
        out += repr(key, depth + 1) + ": " + repr(item, depth + 1);
        check_size(out.size());
      }
      return out + "}";
    }
    default: return "<" + std::string(v.other()->type_name()) + ">";
  }
}

std::string to_text(const value& v) {
  if (v.is(kind::string)) return v.bytes();
  if (v.is(kind::undefined)) return {};
  return repr(v);
}

}  // namespace kiln::language::jinja

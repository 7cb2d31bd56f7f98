#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "kiln/text/impl/jinja/operators.hpp"
#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

using json = nlohmann::ordered_json;

value convert(heap& to, const json& j, std::string_view what, int depth) {
  if (depth > most_nesting)
    raise(errc::limit, std::string(what) + " nest at most " + std::to_string(most_nesting) + " deep");
  switch (j.type()) {
    case json::value_t::null: return value::none();
    case json::value_t::boolean: return j.get<bool>();
    case json::value_t::number_integer: return j.get<std::int64_t>();
    case json::value_t::number_unsigned:
      if (j.get<std::uint64_t>() > std::uint64_t{INT64_MAX}) return j.get<double>();
      return j.get<std::int64_t>();
    case json::value_t::number_float: return j.get<double>();
    case json::value_t::string: return to.string(j.get_ref<const std::string&>());
    case json::value_t::array: {
      std::vector<value> items;
      items.reserve(j.size());
      for (const json& item : j) items.push_back(convert(to, item, what, depth + 1));
      return to.list(std::move(items));
    }
    default: {
      dict_object* d = to.dict();
      for (const auto& [key, item] : j.items()) {
        to.charge(2 * sizeof(value));
        d->set(to.string(key), convert(to, item, what, depth + 1));
      }
      return d;
    }
  }
}

void append_escaped(std::string& out, std::uint32_t unit) {
  char room[8];
  std::snprintf(room, sizeof room, "\\u%04x", unit & 0xFFFF);
  out += room;
}

std::string json_string(std::string_view text, bool ascii_only) {
  std::string out = "\"";
  constexpr std::string_view plain = "\"\\\n\r\t\b\f", letters = "\"\\nrtbf";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::uint32_t point = next_point(text, at);
    const std::size_t i = point < 128 ? plain.find(static_cast<char>(point)) : plain.npos;
    if (i != plain.npos)
      (out += '\\') += letters[i];
    else if (point < 32 || (ascii_only && point > 126 && point < 0x10000))
      append_escaped(out, point);
    else if (ascii_only && point > 126)
      append_escaped(out, 0xD7C0 + (point >> 10)), append_escaped(out, 0xDC00 + (point & 0x3FF));
    else
      out.append(text, begin, at - begin);
  }
  return out += '"';
}

std::string json_number(double d) {
  if (std::isnan(d)) return "NaN";
  if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
  return repr(d);
}

std::string json_key(const value& key, const json_style& style) {
  if (key.is(kind::string)) return json_string(key.bytes(), style.ascii_only);
  if (key.is_number() || key.is(kind::none)) return "\"" + to_json(key, style) + "\"";
  fail("keys of JSON are strings or numbers, found '" + std::string(type_name(key)) + "'");
}

}  // namespace

value from_json(heap& to, std::string_view text, std::string_view what) {
  json parsed;
  try {
    parsed = json::parse(text);
  } catch (const json::exception& e) {
    raise(errc::malformed, std::string(what) + " are JSON: " + e.what());
  }
  return convert(to, parsed, what, 0);
}

std::string to_json(const value& v, const json_style& style, int depth) {
  if (depth > most_nesting) raise(errc::limit, "JSON nests at most " + std::to_string(most_nesting) + " deep");
  switch (v.type()) {
    case kind::none: return "null";
    case kind::boolean: return v.integer() ? "true" : "false";
    case kind::integer: return std::to_string(v.integer());
    case kind::real: return json_number(v.real());
    case kind::string: return json_string(v.bytes(), style.ascii_only);
    case kind::undefined: fail_undefined(v);
    case kind::object: fail("'" + std::string(type_name(v)) + "' object has no form in JSON");
    default: break;
  }
  if (v.is(kind::list) && v.list()->as != list_object::form::list && v.list()->as != list_object::form::tuple &&
      v.list()->as != list_object::form::generator)
    fail("'" + std::string(type_name(v)) + "' object has no form in JSON");
  std::vector<std::string> parts;
  if (v.is(kind::list)) {
    for (const value& item : v.list()->items) parts.push_back(to_json(item, style, depth + 1));
  } else {
    std::vector<std::pair<value, value>> entries = v.dict()->entries;
    if (style.sorts_keys)
      std::stable_sort(entries.begin(), entries.end(),
                       [](const auto& a, const auto& b) { return order(a.first, b.first) < 0; });
    for (const auto& [key, item] : entries)
      parts.push_back(json_key(key, style) + style.key_separator + to_json(item, style, depth + 1));
  }
  const char *open = v.is(kind::list) ? "[" : "{", *close = v.is(kind::list) ? "]" : "}";
  if (parts.empty()) return std::string(open) + close;
  const auto line = [&](int d) {
    std::string s;
    if (style.is_indented) s = "\n";
    for (int i = 0; style.is_indented && i < d; ++i) s += style.indent;
    return s;
  };
  std::string out = open + line(depth + 1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += style.item_separator + line(depth + 1);
    out += parts[i];
    check_size(out.size());
  }
  return out + line(depth) + close;
}

}  // namespace kiln::language::jinja

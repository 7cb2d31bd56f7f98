#include <algorithm>

#include "kiln/text/impl/jinja/interpreter.hpp"
#include "kiln/text/impl/jinja/keys.hpp"
#include "kiln/text/impl/jinja/operators.hpp"
#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

using in_t = interpreter;

value or_default(in_t& in, const value& v, const bound& a) {
  const bool lacks = v.is(kind::undefined) || (a.flag(1) && !is_true(v));
  return lacks ? a.get(0, in.text({})) : v;
}

std::vector<value> pairs_of(in_t& in, const value& v) {
  std::vector<value> out;
  if (v.is(kind::undefined)) return out;
  if (!v.is(kind::dict)) fail("expected a dict, found '" + std::string(type_name(v)) + "'");
  for (const auto& [key, of] : v.dict()->entries) out.push_back(in.values.tuple({key, of}));
  return out;
}

value items(in_t& in, const value& v, const bound&) {
  return in.values.list(pairs_of(in, v), list_object::form::generator);
}

value sort_dict(in_t& in, const value& v, const bound& a) {
  const std::string by = a.has(1) ? a.text(1) : "key";
  if (by != "key" && by != "value") fail("dictsort: expected by='key' or by='value', found '" + by + "'");
  if (v.is(kind::undefined)) fail_undefined(v);
  const key_of key{in, value(std::int64_t{by == "value"}), a.flag(0), false};
  return in.values.list(sorted(pairs_of(in, v), key, a.flag(2)));
}

value attribute(in_t& in, const value& v, const bound& a) {
  if (v.is(kind::dict)) {  // attributes alone, no keys
    if (find_method(v, a.text(0))) return in.attribute(v, a.text(0));
    return in.values.undefined("'dict object' has no attribute '" + a.text(0) + "'");
  }
  return in.attribute(v, a.text(0));
}

value json(in_t& in, const value& v, const bound& a) {
  json_style s;
  s.ascii_only = a.flag(0);
  s.sorts_keys = a.flag(3);
  if (a.has(1) && !a[1].is(kind::none)) {
    s.is_indented = true;
    s.item_separator = ",";
    if (a[1].is(kind::string))
      s.indent = a[1].bytes();
    else
      s.indent.assign(static_cast<std::size_t>(std::clamp<std::int64_t>(a.integer(1, 0), 0, 1000)), ' ');
  }
  if (a.has(2) && !a[2].is(kind::none)) {
    const auto two = in.items_of(a[2]);
    if (two.size() != 2 || !two[0].is(kind::string) || !two[1].is(kind::string))
      fail("tojson: expected two strings as separators");
    s.item_separator = two[0].bytes();
    s.key_separator = two[1].bytes();
  }
  return in.text(to_json(v, s));
}

constexpr native rows[] = {
    {"default", "default_value? boolean?", or_default},
    {"d", "default_value? boolean?", or_default},
    {"items", "", items},
    {"dictsort", "case_sensitive? by? reverse?", sort_dict},
    {"attr", "name", attribute},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", json},
};

}  // namespace

std::span<const native> dict_filters() { return rows; }

}  // namespace kiln::language::jinja

#include "kiln/text/impl/jinja/interpreter.hpp"

namespace kiln::language::jinja {
namespace {

using in_t = interpreter;

// The arguments after the first `n`.
arguments rest_of(const arguments& a, std::size_t n) {
  arguments out;
  for (std::size_t i = n; i < a.positional.size(); ++i) out.positional.push_back(a.positional[i]);
  out.named = a.named;
  return out;
}

std::string name_at(const arguments& a, std::size_t i, const char* what) {
  if (i >= a.positional.size() || !a.positional[i].is(kind::string)) fail(std::string("expected ") + what);
  return a.positional[i].bytes();
}

template <bool wanted, bool by_attribute> value select(in_t& in, const value& v, const bound& b) {
  const arguments& a = b.all();
  constexpr std::size_t at = by_attribute ? 1 : 0;
  if (by_attribute && a.positional.empty()) fail("selectattr and rejectattr: expected the name of an attribute");
  const bool has_test = a.positional.size() > at;
  const std::string test = has_test ? name_at(a, at, "the name of a test") : "";
  const arguments rest = rest_of(a, at + 1);
  std::vector<value> out;
  for (const value& item : in.items_of(v)) {
    const value subject = by_attribute ? in.item_by_path(item, a.positional[0]) : item;
    if ((has_test ? in.test(test, subject, rest) : is_true(subject)) == wanted) out.push_back(item);
  }
  return in.values.list(std::move(out), list_object::form::generator);
}

value map(in_t& in, const value& v, const bound& b) {
  const arguments& a = b.all();
  std::vector<value> out;
  const auto items = in.items_of(v);
  if (a.positional.empty()) {
    value attribute, otherwise = value::none();
    for (const auto& [name, of] : a.named) {
      if (name == "attribute")
        attribute = of;
      else if (name == "default")
        otherwise = of;
      else
        fail("map has no parameter '" + std::string(name) + "'");
    }
    if (attribute.is(kind::undefined)) fail("map: expected the name of a filter, or attribute=");
    for (const value& item : items) {
      const value of = in.item_by_path(item, attribute);
      out.push_back(of.is(kind::undefined) && !otherwise.is(kind::none) ? otherwise : of);
    }
  } else {
    const std::string filter = name_at(a, 0, "the name of a filter");
    const arguments rest = rest_of(a, 1);
    for (const value& item : items) out.push_back(in.filter(filter, item, rest));
  }
  return in.values.list(std::move(out), list_object::form::generator);
}

constexpr native rows[] = {
    {"select", "*", select<true, false>},
    {"reject", "*", select<false, false>},
    {"selectattr", "*", select<true, true>},
    {"rejectattr", "*", select<false, true>},
    {"map", "*", map},
};

}  // namespace

std::span<const native> selection_filters() { return rows; }

}  // namespace kiln::language::jinja

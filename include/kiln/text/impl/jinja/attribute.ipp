#include <charconv>

#include "kiln/text/impl/jinja/interpreter.hpp"
#include "kiln/text/impl/jinja/operators.hpp"

namespace kiln::language::jinja {
namespace {

std::optional<value> find_attribute(interpreter& in, const value& of, std::string_view name) {
  if (of.is(kind::object)) return of.other()->attribute(in, name);
  if (const native* method = find_method(of, name))
    return value(static_cast<object*>(in.values.make<bound_native>(*method, of)));
  return std::nullopt;
}

value missing(interpreter& in, const value& of, std::string_view name) {
  return in.values.undefined("'" + std::string(type_name(of)) + " object' has no attribute '" + std::string(name) +
                             "'");
}

}  // namespace

// The attribute first, then the entry of a dict.
value interpreter::attribute(const value& of, std::string_view name) {
  if (of.is(kind::undefined)) fail_undefined(of);
  if (const auto v = find_attribute(*this, of, name)) return *v;
  if (of.is(kind::dict))
    if (const value* v = of.dict()->find(name)) return *v;
  return missing(*this, of, name);
}

// The entry first, then the attribute.
value interpreter::item(const value& of, const value& key) {
  if (of.is(kind::undefined)) fail_undefined(of);
  if (of.is(kind::dict)) {
    if (!key.is(kind::list) && !key.is(kind::dict))
      if (const value* v = of.dict()->find(key)) return *v;
    if (key.is(kind::list) && key.list()->as == list_object::form::tuple)
      if (const value* v = of.dict()->find(key)) return *v;
  } else if (key.is_whole() && (of.is(kind::list) || of.is(kind::string))) {
    const auto size = static_cast<std::int64_t>(of.is(kind::list) ? of.list()->items.size() : of.str().points);
    const std::int64_t i = key.integer() < 0 ? key.integer() + size : key.integer();
    if (i >= 0 && i < size) {
      if (of.is(kind::list)) return of.list()->items[static_cast<std::size_t>(i)];
      return slice(*this, of, value(i), value(i + 1), value::none());
    }
  }
  if (key.is(kind::string)) {
    if (const auto v = find_attribute(*this, of, key.bytes())) return *v;
    return missing(*this, of, key.bytes());
  }
  return values.undefined("'" + std::string(type_name(of)) + " object' has no element " + repr(key));
}

value interpreter::item_by_path(value of, const value& path) {
  if (!path.is(kind::string)) return item(of, path);
  const std::string& whole = path.bytes();
  for (std::size_t begin = 0; begin <= whole.size();) {
    const std::size_t end = std::min(whole.find('.', begin), whole.size());
    const std::string part = whole.substr(begin, end - begin);
    std::int64_t number = 0;
    const auto [last, failed] = std::from_chars(part.data(), part.data() + part.size(), number);
    const bool is_number =
        !part.empty() && part[0] != '-' && failed == std::errc() && last == part.data() + part.size();
    of = item(of, is_number ? value(number) : text(part));
    begin = end + 1;
  }
  return of;
}

value* scope::find(std::string_view name) {
  for (auto& [n, v] : names)
    if (n == name) return &v;
  return nullptr;
}

void scope::set(std::string_view name, value v) {
  if (value* old = find(name))
    *old = v;
  else
    names.emplace_back(name, v);
}

std::optional<value> name_space::attribute(interpreter&, std::string_view name) {
  if (const value* v = attributes->find(name)) return *v;
  return std::nullopt;
}

}  // namespace kiln::language::jinja

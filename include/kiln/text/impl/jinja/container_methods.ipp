#include <algorithm>

#include "kiln/text/impl/jinja/interpreter.hpp"

namespace kiln::language::jinja {
namespace {

using in_t = interpreter;
using form = list_object::form;

value append(in_t& in, const value& self, const bound& a) {
  in.values.charge(sizeof(value));
  self.list()->items.push_back(a[0]);
  return value::none();
}

value extend(in_t& in, const value& self, const bound& a) {
  const std::vector<value> more = in.items_of(a[0]);
  in.values.charge(more.size() * sizeof(value));
  self.list()->items.insert(self.list()->items.end(), more.begin(), more.end());
  return value::none();
}

value insert(in_t& in, const value& self, const bound& a) {
  auto& items = self.list()->items;
  const auto size = static_cast<std::int64_t>(items.size());
  const std::int64_t i = a.integer(0, 0);
  in.values.charge(sizeof(value));
  items.insert(items.begin() + std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size), a[1]);
  return value::none();
}

value pop(in_t&, const value& self, const bound& a) {
  auto& items = self.list()->items;
  const auto size = static_cast<std::int64_t>(items.size());
  std::int64_t i = a.integer(0, -1);
  if (i < 0) i += size;
  if (i < 0 || i >= size) fail("pop(): the list has no such index");
  const value v = items[static_cast<std::size_t>(i)];
  items.erase(items.begin() + i);
  return v;
}

value remove(in_t&, const value& self, const bound& a) {
  auto& items = self.list()->items;
  const auto at = std::find_if(items.begin(), items.end(), [&](const value& v) { return equal(v, a[0]); });
  if (at == items.end()) fail("remove(): the list does not have the value");
  items.erase(at);
  return value::none();
}

value reverse(in_t&, const value& self, const bound&) {
  std::reverse(self.list()->items.begin(), self.list()->items.end());
  return value::none();
}

value copy_list(in_t& in, const value& self, const bound&) { return in.values.list(self.list()->items); }

value clear_list(in_t&, const value& self, const bound&) { return self.list()->items.clear(), value::none(); }

value index(in_t&, const value& self, const bound& a) {
  const auto& items = self.list()->items;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (equal(items[i], a[0])) return static_cast<std::int64_t>(i);
  fail("index(): " + repr(a[0]) + " is not in the list");
}

value count(in_t&, const value& self, const bound& a) {
  const auto& items = self.list()->items;
  return static_cast<std::int64_t>(
      std::count_if(items.begin(), items.end(), [&](const value& v) { return equal(v, a[0]); }));
}

template <form as> value view(in_t& in, const value& self, const bound&) {
  std::vector<value> out;
  for (const auto& [key, v] : self.dict()->entries)
    out.push_back(as == form::keys ? key : as == form::values ? v : in.values.tuple({key, v}));
  return in.values.list(std::move(out), as);
}

value get(in_t&, const value& self, const bound& a) {
  const value* v = self.dict()->find(a[0]);
  return v ? *v : a.get(1, value::none());
}

void put(in_t& in, dict_object& to, const value& key, const value& v) {
  hash(key);  // throws where it can't be a key
  in.values.charge(2 * sizeof(value));
  to.set(key, v);
}

value set_default(in_t& in, const value& self, const bound& a) {
  if (const value* v = self.dict()->find(a[0])) return *v;
  put(in, *self.dict(), a[0], a.get(1, value::none()));
  return a.get(1, value::none());
}

value pop_key(in_t&, const value& self, const bound& a) {
  const value* found = self.dict()->find(a[0]);
  if (!found && !a.has(1)) fail("pop(): the dict has no key " + repr(a[0]));
  const value v = found ? *found : a[1];
  self.dict()->erase(a[0]);
  return v;
}

value update(in_t& in, const value& self, const bound& a) {
  for (const value& from : a.all().positional) {
    if (!from.is(kind::dict)) fail("update(): expected a dict, found '" + std::string(type_name(from)) + "'");
    const auto entries = from.dict()->entries;
    for (const auto& [key, v] : entries) put(in, *self.dict(), key, v);
  }
  for (const auto& [name, v] : a.all().named) put(in, *self.dict(), in.text(std::string(name)), v);
  return value::none();
}

value copy_dict(in_t& in, const value& self, const bound&) {
  dict_object* d = in.values.dict();
  in.values.charge(self.dict()->entries.size() * 2 * sizeof(value));
  *d = *self.dict();
  return d;
}

value clear_dict(in_t&, const value& self, const bound&) { return *self.dict() = {}, value::none(); }

constexpr native list_rows[] = {
    {"append", "item", append}, {"extend", "iterable", extend}, {"insert", "index item", insert},
    {"pop", "index?", pop},     {"remove", "item", remove},     {"reverse", "", reverse},
    {"copy", "", copy_list},    {"clear", "", clear_list},
};
constexpr native tuple_rows[] = {{"index", "value", index}, {"count", "value", count}};
constexpr native dict_rows[] = {
    {"keys", "", view<form::keys>},   {"values", "", view<form::values>},
    {"items", "", view<form::items>}, {"get", "key default?", get},
    {"pop", "key default?", pop_key}, {"setdefault", "key default?", set_default},
    {"update", "*", update},          {"copy", "", copy_dict},
    {"clear", "", clear_dict},
};

}  // namespace

std::span<const native> list_methods() { return list_rows; }
std::span<const native> tuple_methods() { return tuple_rows; }
std::span<const native> dict_methods() { return dict_rows; }

}  // namespace kiln::language::jinja

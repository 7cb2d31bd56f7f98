#include <cmath>
#include <functional>

#include "kiln/text/impl/jinja/unicode.hpp"
#include "kiln/text/impl/jinja/value.hpp"

namespace kiln::language::jinja {
namespace {

// Fewer entries are compared one by one.
constexpr std::size_t few_entries = 12;

// Lists may hold the same list many times, so that nesting alone bounds no walk over them.
struct walk {
  std::size_t left = 2'000'000;
  int depth = 0;
};
struct inside {
  explicit inside(walk& w) : of(w) {
    if (of.left-- == 0) raise(errc::limit, "values that are compared have at most 2000000 parts");
    if (++of.depth > most_nesting) {
      --of.depth;
      raise(errc::limit, "lists and dicts nest at most " + std::to_string(most_nesting) + " deep");
    }
  }
  ~inside() { --of.depth; }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;
  walk& of;
};

template <class A> int compare(const A& a, const A& b) { return a < b ? -1 : b < a ? 1 : 0; }

}  // namespace

std::optional<value> object::attribute(interpreter&, std::string_view) { return std::nullopt; }

value object::call(interpreter&, const arguments&) {
  fail("'" + std::string(type_name()) + "' object is not callable");
}

void check_size(std::size_t bytes) {
  if (bytes > most_text) raise(errc::limit, "a text has at most " + std::to_string(most_text) + " bytes");
}

void fail(std::string message) { raise(errc::invalid_argument, std::move(message)); }

void fail_undefined(const value& v) { fail(v.why() ? *v.why() : "an undefined value is used"); }

std::string_view type_name(const value& v) {
  switch (v.type()) {
    case kind::undefined: return "Undefined";
    case kind::none: return "NoneType";
    case kind::boolean: return "bool";
    case kind::integer: return "int";
    case kind::real: return "float";
    case kind::string: return "str";
    case kind::list: {
      constexpr std::string_view names[] = {"list",       "tuple", "dict_keys", "dict_values",
                                            "dict_items", "range", "generator"};
      return names[static_cast<unsigned>(v.list()->as)];
    }
    case kind::dict: return "dict";
    default: return v.other()->type_name();
  }
}

bool is_true(const value& v) {
  switch (v.type()) {
    case kind::undefined:
    case kind::none: return false;
    case kind::boolean:
    case kind::integer: return v.integer() != 0;
    case kind::real: return v.real() != 0;
    case kind::string: return !v.bytes().empty();
    case kind::list: return !v.list()->items.empty() || v.list()->as == list_object::form::generator;
    case kind::dict: return !v.dict()->entries.empty();
    default: return true;
  }
}

namespace {

bool equal_parts(const value& a, const value& b, walk& w) {
  const inside guard(w);
  if (a.is_number() && b.is_number()) {
    if (a.is_whole() && b.is_whole()) return a.integer() == b.integer();
    return a.real() == b.real();
  }
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case kind::undefined:
    case kind::none: return true;
    case kind::string: return a.bytes() == b.bytes();
    case kind::list: {
      const auto &l = *a.list(), &r = *b.list();
      if (&l == &r) return true;
      if (l.as != r.as || l.items.size() != r.items.size()) return false;
      for (std::size_t i = 0; i < l.items.size(); ++i)
        if (!equal_parts(l.items[i], r.items[i], w)) return false;
      return true;
    }
    case kind::dict: {
      if (a.dict()->entries.size() != b.dict()->entries.size()) return false;
      for (const auto& [key, v] : a.dict()->entries) {
        const value* other = b.dict()->find(key);
        if (!other || !equal_parts(v, *other, w)) return false;
      }
      return true;
    }
    default: return a.other() == b.other();
  }
}

int order_of_parts(const value& a, const value& b, walk& w) {
  const inside guard(w);
  if (a.is_whole() && b.is_whole()) return compare(a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return compare(a.real(), b.real());
  if (a.is(kind::undefined)) fail_undefined(a);
  if (b.is(kind::undefined)) fail_undefined(b);
  if (a.is(kind::string) && b.is(kind::string)) return compare(a.bytes(), b.bytes());  // UTF-8 keeps the points' order
  if (!a.is(kind::list) || !b.is(kind::list) || a.list()->as != b.list()->as)
    fail("there is no order between '" + std::string(type_name(a)) + "' and '" + std::string(type_name(b)) + "'");
  const auto &l = a.list()->items, &r = b.list()->items;
  for (std::size_t i = 0; i < l.size() && i < r.size(); ++i)
    if (!equal_parts(l[i], r[i], w)) return order_of_parts(l[i], r[i], w);
  return compare(l.size(), r.size());
}

std::size_t hash_parts(const value& v, walk& w) {
  const inside guard(w);
  switch (v.type()) {
    case kind::boolean:
    case kind::integer: return std::hash<double>()(static_cast<double>(v.integer()));
    case kind::real: return std::hash<double>()(v.real());
    case kind::string: return std::hash<std::string_view>()(v.bytes());
    case kind::list: {
      if (v.list()->as != list_object::form::tuple) break;
      std::size_t h = 7;
      for (const value& item : v.list()->items) h = h * 1000003 + hash_parts(item, w);
      return h;
    }
    case kind::dict: break;
    case kind::object: return std::hash<const void*>()(v.other());
    default: return static_cast<std::size_t>(v.type());
  }
  fail("unhashable type: '" + std::string(type_name(v)) + "'");
}

}  // namespace

bool equal(const value& a, const value& b) {
  walk w;
  return equal_parts(a, b, w);
}

int order(const value& a, const value& b) {
  walk w;
  return order_of_parts(a, b, w);
}

std::size_t hash(const value& v) {
  walk w;
  return hash_parts(v, w);
}

value* dict_object::find(const value& key) {
  if (places.empty()) {
    if (key.is(kind::list) || key.is(kind::dict)) hash(key);  // throws where it can't be a key
    for (auto& [k, v] : entries)
      if (equal(k, key)) return &v;
    return nullptr;
  }
  for (auto [at, end] = places.equal_range(hash(key)); at != end; ++at)
    if (equal(entries[at->second].first, key)) return &entries[at->second].second;
  return nullptr;
}

value* dict_object::find(std::string_view key) {
  const auto is_key = [&](const value& k) { return k.is(kind::string) && k.bytes() == key; };
  if (places.empty()) {
    for (auto& [k, v] : entries)
      if (is_key(k)) return &v;
    return nullptr;
  }
  for (auto [at, end] = places.equal_range(std::hash<std::string_view>()(key)); at != end; ++at)
    if (is_key(entries[at->second].first)) return &entries[at->second].second;
  return nullptr;
}

void dict_object::set(const value& key, value v) {
  if (value* old = find(key)) {
    *old = v;
    return;
  }
  entries.emplace_back(key, v);
  if (!places.empty())
    places.emplace(hash(key), entries.size() - 1);
  else if (entries.size() > few_entries)
    index();
}

void dict_object::index() {
  places.clear();
  for (std::size_t i = 0; i < entries.size(); ++i) places.emplace(hash(entries[i].first), i);
}

bool dict_object::erase(const value& key) {
  value* found = find(key);
  if (!found) return false;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (&entries[i].second == found) {
      entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  if (!places.empty()) index();
  return true;
}

void heap::charge(std::size_t bytes) {
  bytes_ += bytes;
  if (bytes_ > most_bytes_)
    raise(errc::limit, "a template's values take at most " + std::to_string(most_bytes_) + " bytes");
}

value heap::string(std::string bytes) {
  charge(sizeof(string_object) + bytes.size());
  const std::size_t points = count_points(bytes);
  return &std::as_const(strings_.emplace_back(string_object{std::move(bytes), points}));
}

value heap::list(std::vector<value> items, list_object::form as) {
  charge(sizeof(list_object) + items.size() * sizeof(value));
  return &lists_.emplace_back(list_object{std::move(items), as});
}

dict_object* heap::dict() {
  charge(sizeof(dict_object));
  return &dicts_.emplace_back();
}

value heap::undefined(std::string why) {
  charge(sizeof why + why.size());
  return value::undefined(&reasons_.emplace_back(std::move(why)));
}

}  // namespace kiln::language::jinja

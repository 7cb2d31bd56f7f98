#include <ctime>

#include "kiln/text/impl/jinja/interpreter.hpp"

namespace kiln::language::jinja {
namespace {

using in_t = interpreter;

constexpr std::int64_t longest_range = 100000;  // as in Jinja's sandbox

value range(in_t& in, const value&, const bound& a) {
  for (std::size_t i = 0; i < 3; ++i)
    if (a.has(i) && !a[i].is_whole()) fail("range(): expected integers, found '" + std::string(type_name(a[i])) + "'");
  const std::int64_t begin = a.has(1) ? a[0].integer() : 0, end = a.has(1) ? a[1].integer() : a[0].integer();
  const std::int64_t by = a.integer(2, 1);
  if (by == 0) fail("range(): expected a step other than 0");
  std::vector<value> items;
  for (std::int64_t i = begin; by > 0 ? i < end : i > end;) {
    if (static_cast<std::int64_t>(items.size()) == longest_range)
      raise(errc::limit, "a range has at most " + std::to_string(longest_range) + " numbers");
    items.push_back(i);
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  return in.values.list(std::move(items), list_object::form::range);
}

dict_object* dict_of(in_t& in, const bound& a) {
  dict_object* d = in.values.dict();
  const auto put = [&](const value& key, const value& v) {
    hash(key);  // throws where it can't be a key
    in.values.charge(2 * sizeof(value));
    d->set(key, v);
  };
  if (a.all().positional.size() > 1) fail("dict(): expected one mapping at most");
  for (const value& from : a.all().positional) {
    if (from.is(kind::dict)) {
      const auto entries = from.dict()->entries;
      for (const auto& [key, v] : entries) put(key, v);
      continue;
    }
    for (const value& pair : in.items_of(from)) {
      const auto two = in.items_of(pair);
      if (two.size() != 2) fail("dict(): expected pairs of key and value");
      put(two[0], two[1]);
    }
  }
  for (const auto& [name, v] : a.all().named) put(in.text(std::string(name)), v);
  return d;
}

value dict(in_t& in, const value&, const bound& a) { return dict_of(in, a); }

value make_namespace(in_t& in, const value&, const bound& a) {
  auto* n = in.values.make<name_space>();
  n->attributes = dict_of(in, a);
  return static_cast<object*>(n);
}

// cycler("odd", "even"): .next(), .current, .reset()
struct cycler_object : object {
  std::string_view type_name() const override { return "Cycler"; }
  std::optional<value> attribute(interpreter& in, std::string_view name) override;
  std::vector<value> items;
  std::size_t at = 0;
};

constexpr native next{"next", "", [](in_t&, const value& self, const bound&) -> value {
                        auto& c = static_cast<cycler_object&>(*self.other());
                        const value v = c.items[c.at];
                        c.at = (c.at + 1) % c.items.size();
                        return v;
                      }};
constexpr native reset{"reset", "", [](in_t&, const value& self, const bound&) -> value {
                         static_cast<cycler_object&>(*self.other()).at = 0;
                         return value::none();
                       }};

std::optional<value> cycler_object::attribute(interpreter& in, std::string_view name) {
  if (name == "current") return items[at];
  const native* method = name == "next" ? &next : name == "reset" ? &reset : nullptr;
  if (!method) return std::nullopt;
  return value(static_cast<object*>(in.values.make<bound_native>(*method, value(static_cast<object*>(this)))));
}

value cycler(in_t& in, const value&, const bound& a) {
  if (a.all().positional.empty()) fail("cycler(): expected one item or more");
  auto* c = in.values.make<cycler_object>();
  c->items = a.all().positional;
  return static_cast<object*>(c);
}

// joiner(", "): nothing at the first call, then the separator
struct joiner_object : object {
  std::string_view type_name() const override { return "Joiner"; }
  bool is_callable() const override { return true; }
  value call(interpreter& in, const arguments&) override { return std::exchange(used, true) ? separator : in.text({}); }
  value separator;
  bool used = false;
};

value joiner(in_t& in, const value&, const bound& a) {
  auto* j = in.values.make<joiner_object>();
  j->separator = a.has(0) ? a[0] : in.text(", ");
  return static_cast<object*>(j);
}

value raise_exception(in_t&, const value&, const bound& a) { raise(errc::invalid_argument, to_text(a[0])); }

value now_as_text(in_t& in, const value&, const bound& a) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  const std::string format = a.text(0) + ".";  // strftime's 0 then means too little room
  if (format.size() > 1000) fail("strftime_now(): expected a format of at most 1000 bytes");
  std::string out(format.size() * 32 + 64, '\0');
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &parts));
  if (!out.empty()) out.pop_back();
  return in.text(std::move(out));
}

constexpr native rows[] = {
    {"range", "start stop? step?", range},
    {"dict", "*", dict},
    {"namespace", "*", make_namespace},
    {"cycler", "*", cycler},
    {"joiner", "sep?", joiner},
    {"raise_exception", "message", raise_exception},
    {"strftime_now", "format", now_as_text},
};

}  // namespace

std::span<const native> global_functions() { return rows; }

}  // namespace kiln::language::jinja

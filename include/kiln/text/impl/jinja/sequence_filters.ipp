#include <algorithm>
#include <unordered_map>

#include "kiln/text/impl/jinja/interpreter.hpp"
#include "kiln/text/impl/jinja/keys.hpp"
#include "kiln/text/impl/jinja/operators.hpp"
#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

using in_t = interpreter;
using form = list_object::form;

value length(in_t&, const value& v, const bound&) {
  switch (v.type()) {
    case kind::undefined: return std::int64_t{0};
    case kind::string: return static_cast<std::int64_t>(v.str().points);
    case kind::list:
      if (v.list()->as != form::generator) return static_cast<std::int64_t>(v.list()->items.size());
      break;
    case kind::dict: return static_cast<std::int64_t>(v.dict()->entries.size());
    default: break;
  }
  fail("object of type '" + std::string(type_name(v)) + "' has no length");
}

value first(in_t& in, const value& v, const bound&) {
  const auto items = in.items_of(v);
  return items.empty() ? in.values.undefined("No first item, sequence was empty.") : items.front();
}

value last(in_t& in, const value& v, const bound&) {
  const auto items = in.items_of(v);
  return items.empty() ? in.values.undefined("No last item, sequence was empty.") : items.back();
}

value join(in_t& in, const value& v, const bound& a) {
  const std::string by = a.has(0) ? to_text(a[0]) : "";
  std::string out;
  bool is_first = true;
  for (const value& item : in.items_of(v)) {
    if (!is_first) out += by;
    is_first = false;
    out += to_text(a.has(1) && !a[1].is(kind::none) ? in.item_by_path(item, a[1]) : item);
    check_size(out.size());
  }
  return in.text(std::move(out));
}

value list(in_t& in, const value& v, const bound&) { return in.values.list(in.items_of(v)); }

value reverse(in_t& in, const value& v, const bound&) {
  if (v.is(kind::string)) return slice(in, v, value::none(), value::none(), value(std::int64_t{-1}));
  auto items = in.items_of(v);
  std::reverse(items.begin(), items.end());
  return in.values.list(std::move(items), form::generator);
}

value sort(in_t& in, const value& v, const bound& a) {
  const key_of key{in, a.get(2, value::none()), a.flag(1), true};
  return in.values.list(sorted(in.items_of(v), key, a.flag(0)));
}

value unique(in_t& in, const value& v, const bound& a) {
  const key_of key{in, a.get(1, value::none()), a.flag(0), false};
  dict_object* seen = in.values.dict();
  std::vector<value> out;
  for (const value& item : in.items_of(v)) {
    const value k = key(item);
    hash(k);  // throws where it can't be a key
    if (seen->find(k)) continue;
    in.values.charge(2 * sizeof(value));
    seen->set(k, true);
    out.push_back(item);
  }
  return in.values.list(std::move(out), form::generator);
}

template <int sign> value extreme(in_t& in, const value& v, const bound& a) {
  const key_of key{in, a.get(1, value::none()), a.flag(0), false};
  const auto items = in.items_of(v);
  if (items.empty()) return in.values.undefined("No aggregated item, sequence was empty.");
  value best = items[0], best_key = key(items[0]);
  for (std::size_t i = 1; i < items.size(); ++i) {
    const value k = key(items[i]);
    if (order(k, best_key) * sign > 0) best = items[i], best_key = k;
  }
  return best;
}

value sum(in_t& in, const value& v, const bound& a) {
  value total = a.get(1, value(std::int64_t{0}));
  for (const value& item : in.items_of(v))
    total =
        calculate(in, arithmetic::add, total, a.has(0) && !a[0].is(kind::none) ? in.item_by_path(item, a[0]) : item);
  return total;
}

value batch(in_t& in, const value& v, const bound& a) {
  const std::int64_t size = a.integer(0, 1);
  std::vector<value> out, row;
  const auto finish = [&] { out.push_back(in.values.list(std::exchange(row, {}))); };
  for (const value& item : in.items_of(v)) {
    if (static_cast<std::int64_t>(row.size()) == size) finish();
    row.push_back(item);
  }
  if (!row.empty()) {
    if (a.has(1) && !a[1].is(kind::none)) {
      in.values.charge(static_cast<std::size_t>(std::max<std::int64_t>(size, 0)) * sizeof(value));
      while (static_cast<std::int64_t>(row.size()) < size) row.push_back(a[1]);
    }
    finish();
  }
  return in.values.list(std::move(out), form::generator);
}

value slices(in_t& in, const value& v, const bound& a) {
  const auto items = in.items_of(v);
  const std::int64_t n = a.integer(0, 1);
  if (n <= 0) fail("slice: expected one slice or more, found " + std::to_string(n));
  in.step(static_cast<std::size_t>(n));
  const auto all = static_cast<std::int64_t>(items.size());
  const std::int64_t each = all / n, longer = all % n;
  std::vector<value> out;
  auto at = items.begin();
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<value> row(at, at + each + (i < longer ? 1 : 0));
    at += static_cast<std::ptrdiff_t>(row.size());
    if (a.has(1) && !a[1].is(kind::none) && i >= longer) row.push_back(a[1]);
    out.push_back(in.values.list(std::move(row)));
  }
  return in.values.list(std::move(out), form::generator);
}

value group_by(in_t& in, const value& v, const bound& a) {
  const key_of key{in, a[0], a.flag(2), false, a.get(1, value::none())};
  const auto items = sorted(in.items_of(v), key, false);
  std::vector<value> out, row;
  for (std::size_t i = 0; i < items.size(); ++i) {
    row.push_back(items[i]);
    if (i + 1 < items.size() && equal(key(items[i]), key(items[i + 1]))) continue;
    value shown = in.item_by_path(row[0], a[0]);  // in its own case
    if (shown.is(kind::undefined) && a.has(1)) shown = a[1];
    out.push_back(in.values.tuple({shown, in.values.list(std::exchange(row, {}))}));
  }
  return in.values.list(std::move(out));
}

constexpr native rows[] = {
    {"length", "", length},
    {"count", "", length},
    {"first", "", first},
    {"last", "", last},
    {"join", "d? attribute?", join},
    {"list", "", list},
    {"reverse", "", reverse},
    {"sort", "reverse? case_sensitive? attribute?", sort},
    {"unique", "case_sensitive? attribute?", unique},
    {"min", "case_sensitive? attribute?", extreme<-1>},
    {"max", "case_sensitive? attribute?", extreme<1>},
    {"sum", "attribute? start?", sum},
    {"batch", "linecount fill_with?", batch},
    {"slice", "slices fill_with?", slices},
    {"groupby", "attribute default? case_sensitive?", group_by},
};

}  // namespace

std::span<const native> sequence_filters() { return rows; }

}  // namespace kiln::language::jinja

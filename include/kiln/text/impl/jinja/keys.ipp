#include "kiln/text/impl/jinja/keys.hpp"

#include <algorithm>
#include <numeric>

#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

value folded(interpreter& in, const value& v, bool is_case_sensitive) {
  return v.is(kind::string) && !is_case_sensitive ? in.text(lower(v.bytes())) : v;
}

}  // namespace

value key_of::operator()(const value& item) const {
  in.step();
  if (attribute.is(kind::none)) return folded(in, item, is_case_sensitive);
  const auto one = [&](const value& path) {
    const value v = in.item_by_path(item, path);
    return folded(in, v.is(kind::undefined) && !otherwise.is(kind::none) ? otherwise : v, is_case_sensitive);
  };
  if (!takes_several || !attribute.is(kind::string) || attribute.bytes().find(',') == std::string::npos)
    return one(attribute);
  std::vector<value> all;
  const std::string& paths = attribute.bytes();
  for (std::size_t begin = 0; begin <= paths.size();) {
    const std::size_t end = std::min(paths.find(',', begin), paths.size());
    all.push_back(one(in.text(paths.substr(begin, end - begin))));
    begin = end + 1;
  }
  return in.values.tuple(std::move(all));
}

std::vector<value> sorted(std::vector<value> items, const key_of& key, bool is_reversed) {
  std::vector<value> keys, out;
  for (const value& v : items) keys.push_back(key(v));
  std::vector<std::size_t> places(items.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return is_reversed ? order(keys[a], keys[b]) > 0 : order(keys[a], keys[b]) < 0;
  });
  for (const std::size_t i : places) out.push_back(items[i]);
  return out;
}

}  // namespace kiln::language::jinja

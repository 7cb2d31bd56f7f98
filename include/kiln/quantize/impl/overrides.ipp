#include "kiln/quantize/overrides.hpp"

#include <nlohmann/json.hpp>

namespace kiln::quantize {
namespace {

using nlohmann::ordered_json;

template <class T> void take(const ordered_json& from, std::optional<T>& into) { into = from.get<T>(); }
void take(const ordered_json& from, std::optional<dtype>& into) {
  const auto name = from.get<std::string>();
  for (std::size_t t = 0; t < all_dtypes; ++t)
    if (to_string(static_cast<dtype>(t)) == name) into = static_cast<dtype>(t);
  if (!into) raise(errc::invalid_argument, "no type '" + name + "'");
}

template <class T> ordered_json shown(const T& value) { return value; }
ordered_json shown(dtype t) { return std::string(to_string(t)); }

// Calls `use(key, field)` for each field of an override.
template <class Override, class Use> void each_field(Override& o, Use&& use) {
  use("type", o.type), use("symmetric", o.symmetric), use("reduced", o.reduced), use("low", o.low);
  use("high", o.high), use("scale", o.scale), use("zero", o.zero);
}

void read_key(const std::string& key, const ordered_json& value, value_override& into) {
  bool known = false;
  each_field(into, [&](const char* name, auto& field) {
    if (key != name) return;
    known = true;
    take(value, field);
  });
  if (!known) raise(errc::invalid_argument, "expected type, symmetric, reduced, low, high, scale or zero");
}

}  // namespace

value_overrides parse_overrides(std::string_view json, const std::string& place) {
  value_overrides out;
  if (json.empty()) return out;
  std::string at = place;
  try {
    const ordered_json all = ordered_json::parse(json);
    if (!all.is_object()) raise(errc::invalid_argument, "expected an object of values by name");
    for (const auto& [name, keys] : all.items()) {
      at = place + ": '" + name + "'";
      if (!keys.is_object()) raise(errc::invalid_argument, "expected an object");
      value_override& o = out[name];
      for (const auto& [key, value] : keys.items()) {
        at = place + ": '" + name + "', " + key;
        read_key(key, value, o);
      }
    }
  } catch (const std::exception& e) {
    raise(errc::invalid_argument, at + ": " + e.what());
  }
  return out;
}

std::string overrides_text(const value_overrides& all) {
  if (all.empty()) return {};
  ordered_json out = ordered_json::object();
  for (const auto& [name, o] : all) {
    ordered_json& keys = out[name] = ordered_json::object();
    each_field(o, [&](const char* key, const auto& field) {
      if (field) keys[key] = shown(*field);
    });
  }
  return out.dump();
}

}  // namespace kiln::quantize

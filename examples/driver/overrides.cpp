#include "overrides.hpp"

#include <fmt/format.h>

#include <fstream>

#include "json.hpp"

namespace kiln::driver {

namespace {

template <class T> void take(const json& from, std::optional<T>& into) { into = from.get<T>(); }
void take(const json& from, std::optional<dtype>& into) {
  const auto name = from.get<std::string>();
  for (std::size_t t = 0; t < all_dtypes; ++t)
    if (to_string(static_cast<dtype>(t)) == name) into = static_cast<dtype>(t);
  if (!into) raise(errc::invalid_argument, fmt::format("no type '{}'", name));
}

void read_key(const std::string& key, const json& value, quantize::value_override& into) {
  if (key == "type") return take(value, into.type);
  if (key == "symmetric") return take(value, into.symmetric);
  if (key == "reduced") return take(value, into.reduced);
  if (key == "low") return take(value, into.low);
  if (key == "high") return take(value, into.high);
  if (key == "scale") return take(value, into.scale);
  if (key == "zero") return take(value, into.zero);
  raise(errc::invalid_argument, "expected type, symmetric, reduced, low, high, scale or zero");
}

}  // namespace

std::map<std::string, quantize::value_override> read_overrides(const std::string& file) {
  std::ifstream in(file);
  if (!in) raise(errc::io, fmt::format("cannot read {}", file));
  std::map<std::string, quantize::value_override> out;
  std::string place;
  try {
    const json all = json::parse(in);
    if (!all.is_object()) raise(errc::invalid_argument, "expected an object of values by name");
    for (const auto& [name, keys] : all.items()) {
      place = fmt::format(": '{}'", name);
      if (!keys.is_object()) raise(errc::invalid_argument, "expected an object");
      for (const auto& [key, value] : keys.items()) {
        place = fmt::format(": '{}', {}", name, key);
        read_key(key, value, out[name]);
      }
    }
  } catch (const std::exception& e) {
    raise(errc::invalid_argument, fmt::format("{}{}: {}", file, place, e.what()));
  }
  return out;
}

}  // namespace kiln::driver

#include "kiln/interface/serve/impl/tensor_json.hpp"

#include <cmath>
#include <vector>

namespace kiln::serve {

namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& expected, const std::string& found) {
  throw api_error(where + ": expected " + expected + ", found " + found);
}

// Nested lists one after the other; a body's depth is bounded.
template <class F> void each_element(const json& j, const F& f) {
  if (!j.is_array()) return f(j);
  for (const json& one : j) each_element(one, f);
}

// Whole numbers keep all of their digits.
template <class T, class Is>
argument read(const json& data, const shape& type, const std::string& where, const Is& is) {
  // memory is taken for what is there, not for what a shape says
  const auto count = static_cast<std::size_t>(type.elements().value());
  std::size_t found = 0;
  each_element(data, [&](const json&) { ++found; });
  if (found != count) refuse(where, std::to_string(count) + " elements", std::to_string(found));
  small_vector<T> values;
  values.reserve(count);
  each_element(data, [&](const json& v) {
    if (!is(v)) refuse(where, "elements of " + std::string(to_string(type.type)), text_of(v).substr(0, 40));
    values.push_back(v.get<T>());
  });
  argument a(type);
  encode(type.type, values.data(), a.data(), type.elements().value());
  return a;
}

template <class T> json list_of(const argument& a, const std::string& where) {
  const auto values = a.to<T>();
  json out = json::array();
  for (const T v : values) {
    if constexpr (std::is_floating_point_v<T>)
      if (!std::isfinite(v)) refuse(where, "numbers that JSON has, or binary_data in the request", std::to_string(v));
    out.push_back(v);
  }
  return out;
}

}  // namespace

std::pair<std::int64_t, std::uint64_t> range_of(dtype t) {
  const std::size_t bits = 8 * size_of(t);
  if (is_unsigned_integer(t)) return {0, bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1};
  const auto most = (std::uint64_t{1} << (bits - 1)) - 1;
  return {-static_cast<std::int64_t>(most) - 1, most};
}

dims extents_of(std::span<const std::int64_t> lens, const std::string& where, std::int64_t most) {
  if (lens.size() > max_rank) refuse(where, "a list of at most " + std::to_string(max_rank) + " extents", "more");
  dims out;
  std::int64_t all = 1;
  for (const std::int64_t n : lens) {
    if (n < 0 || __builtin_mul_overflow(all, std::max<std::int64_t>(1, n), &all) || all > most)
      refuse(where, "extents of at most " + std::to_string(most) + " elements", text_of(json(lens)).substr(0, 80));
    out.push_back(n);
  }
  return out;
}

dims extents_of(const json& list, const std::string& where, std::int64_t most) {
  if (!list.is_array() || list.size() > max_rank)
    refuse(where, "a list of at most " + std::to_string(max_rank) + " extents", list.is_array() ? "more" : "none");
  std::vector<std::int64_t> lens;
  for (const json& v : list) {
    if (!v.is_number_integer()) refuse(where, "extents that are whole numbers", text_of(list).substr(0, 80));
    lens.push_back(v.get<std::int64_t>());
  }
  return extents_of(std::span<const std::int64_t>(lens), where, most);
}

argument argument_of(const json& data, const shape& type, const std::string& where) {
  if (type.type == dtype::boolean) return read<bool>(data, type, where, [](const json& v) { return v.is_boolean(); });
  if (!is_integer(type.type)) return read<double>(data, type, where, [](const json& v) { return v.is_number(); });
  const auto range = range_of(type.type);
  const auto fits = [&](const json& v) {
    if (v.is_number_unsigned()) return v.get<std::uint64_t>() <= range.second;
    return v.is_number_integer() && v.get<std::int64_t>() >= range.first;
  };
  return is_unsigned_integer(type.type) ? read<std::uint64_t>(data, type, where, fits)
                                        : read<std::int64_t>(data, type, where, fits);
}

argument argument_of(std::string_view bytes, const shape& type, const std::string& where) {
  const auto expected = static_cast<std::size_t>(type.bytes().value());
  if (bytes.size() != expected) refuse(where, std::to_string(expected) + " bytes", std::to_string(bytes.size()));
  argument a(type);
  if (!bytes.empty()) std::memcpy(a.data(), bytes.data(), bytes.size());
  if (type.type == dtype::boolean)
    for (const char b : bytes)
      if (b != 0 && b != 1) refuse(where, "bytes of 0 and 1", "another one");
  return a;
}

json json_of(const argument& a, const std::string& where) {
  const dtype t = a.get_shape().type;
  if (t == dtype::boolean) return list_of<bool>(a, where);
  if (is_unsigned_integer(t)) return list_of<std::uint64_t>(a, where);
  return is_integer(t) ? list_of<std::int64_t>(a, where) : list_of<double>(a, where);
}

std::string bytes_of(const argument& a) {
  const argument own = a.contiguous();
  return {reinterpret_cast<const char*>(own.data()), static_cast<std::size_t>(own.get_shape().bytes().value())};
}

}  // namespace kiln::serve

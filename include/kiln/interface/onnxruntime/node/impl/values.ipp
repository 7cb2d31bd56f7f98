#include "kiln/interface/onnxruntime/node/values.hpp"

#include <cmath>
#include <cstring>

namespace kiln::node {

namespace {

[[noreturn]] void refuse(std::string_view name, const char* expected) {
  throw std::invalid_argument(std::string(name) + " must be " + expected);
}

std::size_t size_of(array_kind kind) {
  constexpr std::size_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8};
  return static_cast<std::size_t>(kind) < std::size(sizes) ? sizes[static_cast<std::size_t>(kind)] : 0;
}

}  // namespace

void check(napi_status status, const char* what) {
  if (status != 0) throw std::runtime_error(std::string("Node-API: ") + what + " failed: " + std::to_string(status));
}

value_kind kind_of(napi_env env, napi_value v) {
  napi_valuetype kind = 0;
  check(napi_typeof(env, v, &kind), "typeof");
  return static_cast<value_kind>(kind);
}

std::string text_of(napi_env env, napi_value v, std::string_view name) {
  if (kind_of(env, v) != value_kind::string) refuse(name, "a string");
  std::size_t length = 0;
  check(napi_get_value_string_utf8(env, v, nullptr, 0, &length), "the length of a string");
  std::string out(length + 1, '\0');  // with the zero that the call writes
  check(napi_get_value_string_utf8(env, v, out.data(), out.size(), &length), "reading a string");
  out.resize(length);
  return out;
}

double number_of(napi_env env, napi_value v, std::string_view name) {
  double out = 0;
  if (kind_of(env, v) != value_kind::number || napi_get_value_double(env, v, &out) != 0) refuse(name, "a number");
  return out;
}

std::vector<napi_value> items_of(napi_env env, napi_value v, std::string_view name) {
  bool is_array = false;
  check(napi_is_array(env, v, &is_array), "is_array");
  if (!is_array) refuse(name, "an array");
  std::uint32_t length = 0;
  check(napi_get_array_length(env, v, &length), "the length of an array");
  std::vector<napi_value> out(length);
  for (std::uint32_t i = 0; i < length; ++i) check(napi_get_element(env, v, i, &out[i]), "an array's item");
  return out;
}

std::vector<std::string> texts_of(napi_env env, napi_value v, std::string_view name) {
  std::vector<std::string> out;
  for (const napi_value item : items_of(env, v, name)) out.push_back(text_of(env, item, name));
  return out;
}

std::vector<std::int64_t> extents_of(napi_env env, napi_value v, std::string_view name) {
  std::vector<std::int64_t> out;
  for (const napi_value item : items_of(env, v, name)) {
    const double n = number_of(env, item, name);
    if (!(n >= 0 && n <= 0x1p53 && n == std::floor(n))) refuse(name, "an array of whole numbers that are not negative");
    out.push_back(static_cast<std::int64_t>(n));
  }
  return out;
}

typed_bytes bytes_of(napi_env env, napi_value v, std::string_view name) {
  bool is_typed = false;
  check(napi_is_typedarray(env, v, &is_typed), "is_typedarray");
  if (!is_typed) refuse(name, "a typed array");
  napi_typedarray_type kind = -1;  // stays so where Node-API has no number for the kind
  std::size_t length = 0;
  void* data = nullptr;
  check(napi_get_typedarray_info(env, v, &kind, &length, &data, nullptr, nullptr), "a typed array");
  const auto k = static_cast<array_kind>(kind);
  if (size_of(k) == 0) refuse(name, "a typed array of integers of 8 to 64 bits, or of floats of 32 or 64");
  return {k, {static_cast<std::byte*>(data), data ? length * size_of(k) : 0}};
}

napi_value to_value(napi_env env, std::string_view text) {
  napi_value out = nullptr;
  check(napi_create_string_utf8(env, text.data(), text.size(), &out), "making a string");
  return out;
}

napi_value to_value(napi_env env, double number) {
  napi_value out = nullptr;
  check(napi_create_double(env, number, &out), "making a number");
  return out;
}

napi_value to_array(napi_env env, std::span<const napi_value> items) {
  napi_value out = nullptr;
  check(napi_create_array_with_length(env, items.size(), &out), "making an array");
  for (std::size_t i = 0; i < items.size(); ++i)
    check(napi_set_element(env, out, static_cast<std::uint32_t>(i), items[i]), "an array's item");
  return out;
}

napi_value to_buffer(napi_env env, std::span<const std::byte> bytes) {
  void* data = nullptr;
  napi_value out = nullptr;
  check(napi_create_arraybuffer(env, bytes.size(), &data, &out), "making an ArrayBuffer");
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  return out;
}

napi_value to_object(napi_env env, std::initializer_list<std::pair<const char*, napi_value>> members) {
  napi_value out = nullptr;
  check(napi_create_object(env, &out), "making an object");
  for (const auto& [name, v] : members) check(napi_set_named_property(env, out, name, v), "an object's member");
  return out;
}

}  // namespace kiln::node

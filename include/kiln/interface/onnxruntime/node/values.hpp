#pragma once
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/interface/onnxruntime/node/napi.hpp"

namespace kiln::node {

/// Throws `std::runtime_error` where a call of Node-API failed; a pending exception of JavaScript stays pending.
void check(napi_status status, const char* what);

value_kind kind_of(napi_env env, napi_value v);

/// Values as C++ has them; each throws `std::invalid_argument` with `name` where the value is of another kind.
std::string text_of(napi_env env, napi_value v, std::string_view name);
double number_of(napi_env env, napi_value v, std::string_view name);
std::vector<napi_value> items_of(napi_env env, napi_value v, std::string_view name);
std::vector<std::string> texts_of(napi_env env, napi_value v, std::string_view name);
/// Whole numbers from 0 to 2^53.
std::vector<std::int64_t> extents_of(napi_env env, napi_value v, std::string_view name);

/// The bytes of a typed array, where they are.
struct typed_bytes {
  array_kind kind;
  std::span<std::byte> bytes;
};
typed_bytes bytes_of(napi_env env, napi_value v, std::string_view name);

/// C++ values as JavaScript has them.
napi_value to_value(napi_env env, std::string_view text);
napi_value to_value(napi_env env, double number);
napi_value to_array(napi_env env, std::span<const napi_value> items);
/// An ArrayBuffer with a copy of the bytes.
napi_value to_buffer(napi_env env, std::span<const std::byte> bytes);
napi_value to_object(napi_env env, std::initializer_list<std::pair<const char*, napi_value>> members);

}  // namespace kiln::node

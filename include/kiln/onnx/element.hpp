#pragma once
#include <iterator>
#include <optional>
#include <string_view>

#include "kiln/core/dtype.hpp"

namespace kiln::onnx {

/// ONNX's element types by their numbers in TensorProto.DataType.
enum class element : int {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  complex64 = 14,
  complex128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
};

/// The element type's name as ONNX spells it in lower case: "float16", "int64".
constexpr std::string_view to_string(element e) {
  constexpr std::string_view names[] = {
      "undefined", "float",      "uint8",      "int8",         "uint16",         "int16",      "int32",
      "int64",     "string",     "bool",       "float16",      "double",         "uint32",     "uint64",
      "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
      "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};
  const auto i = static_cast<unsigned>(e);
  return i < std::size(names) ? names[i] : "an unknown element type";
}

/// kiln's dtype for an element type; none for `undefined` and numbers that are no type.
constexpr std::optional<dtype> to_dtype(element e) {
  using enum dtype;
  constexpr dtype types[] = {f32,    u8,         i8,  u16, i16,    i32,    i64,  string,   boolean,
                             f16,    f64,        u32, u64, c64,    c128,   bf16, f8e4m3fn, f8e4m3fnuz,
                             f8e5m2, f8e5m2fnuz, u4,  i4,  f4e2m1, f8e8m0, u2,   i2};
  const auto i = static_cast<unsigned>(e) - 1;
  return i < std::size(types) ? std::optional(types[i]) : std::nullopt;
}

/// The element type of a dtype; `undefined` if ONNX has none.
constexpr element to_element(dtype t) {
  for (int e = 1; e <= static_cast<int>(element::i2); ++e)
    if (to_dtype(static_cast<element>(e)) == t) return static_cast<element>(e);
  return element::undefined;
}

}  // namespace kiln::onnx

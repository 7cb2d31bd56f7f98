#pragma once
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

/// The element type's name as ONNX spells it in lower case: "float16", "int64"; "element type 99" has no name.
constexpr std::string_view to_string(element e) {
  constexpr std::string_view names[] = {
      "undefined", "float",      "uint8",      "int8",         "uint16",         "int16",      "int32",
      "int64",     "string",     "bool",       "float16",      "double",         "uint32",     "uint64",
      "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
      "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};
  const auto i = static_cast<unsigned>(e);
  return i < sizeof(names) / sizeof(names[0]) ? names[i] : "an unknown element type";
}

/// kiln's dtype for an element type; none for `undefined` and numbers that are no type.
constexpr std::optional<dtype> to_dtype(element e) {
  switch (e) {
    case element::f32:
      return dtype::f32;
    case element::u8:
      return dtype::u8;
    case element::i8:
      return dtype::i8;
    case element::u16:
      return dtype::u16;
    case element::i16:
      return dtype::i16;
    case element::i32:
      return dtype::i32;
    case element::i64:
      return dtype::i64;
    case element::boolean:
      return dtype::boolean;
    case element::f16:
      return dtype::f16;
    case element::f64:
      return dtype::f64;
    case element::u32:
      return dtype::u32;
    case element::u64:
      return dtype::u64;
    case element::bf16:
      return dtype::bf16;
    case element::f8e4m3fn:
      return dtype::f8e4m3fn;
    case element::f8e4m3fnuz:
      return dtype::f8e4m3fnuz;
    case element::f8e5m2:
      return dtype::f8e5m2;
    case element::f8e5m2fnuz:
      return dtype::f8e5m2fnuz;
    case element::f8e8m0:
      return dtype::f8e8m0;
    case element::f4e2m1:
      return dtype::f4e2m1;
    case element::i4:
      return dtype::i4;
    case element::u4:
      return dtype::u4;
    case element::i2:
      return dtype::i2;
    case element::u2:
      return dtype::u2;
    case element::string:
      return dtype::string;
    case element::complex64:
      return dtype::c64;
    case element::complex128:
      return dtype::c128;
    default:
      return std::nullopt;
  }
}

/// The element type that holds a dtype.
constexpr element to_element(dtype t) {
  for (int e = 1; e <= static_cast<int>(element::i2); ++e)
    if (to_dtype(static_cast<element>(e)) == t) return static_cast<element>(e);
  return element::undefined;
}

}  // namespace kiln::onnx

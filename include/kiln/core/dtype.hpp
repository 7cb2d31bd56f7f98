#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "kiln/core/half.hpp"
#include "kiln/core/inline_string.hpp"
#include "kiln/core/narrow.hpp"

namespace kiln {

/// Element type of a tensor. The order is part of the saved format: append only. After `boolean` come the narrow
/// numbers of at most eight bits, one to a byte in memory, which are moved, stored and converted only; then handles to
/// objects (see object.hpp), which ops move, or are made for.
enum class dtype : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  boolean,
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  f8e8m0,
  f4e2m1,
  i4,
  u4,
  i2,
  u2,
  string,
  sequence,
  optional,
  map,
  c64,
  c128
};

/// The dtypes that ops compute with, and all there are.
inline constexpr std::size_t dtype_count = 13, all_dtypes = 29;

namespace detail {
struct dtype_row {
  std::string_view name;
  std::size_t bytes;
};
inline constexpr dtype_row dtype_rows[all_dtypes] = {
    {"f64", 8},      {"f32", 4},      {"f16", 2},        {"bf16", 2},   {"i8", 1},         {"i16", 2},
    {"i32", 4},      {"i64", 8},      {"u8", 1},         {"u16", 2},    {"u32", 4},        {"u64", 8},
    {"bool", 1},     {"f8e4m3fn", 1}, {"f8e4m3fnuz", 1}, {"f8e5m2", 1}, {"f8e5m2fnuz", 1}, {"f8e8m0", 1},
    {"f4e2m1", 1},   {"i4", 1},       {"u4", 1},         {"i2", 1},     {"u2", 1},         {"string", 8},
    {"sequence", 8}, {"optional", 8}, {"map", 8},        {"c64", 8},    {"c128", 8}};
}  // namespace detail

/// The dtype's name: "f32", "i64", "bool", …
constexpr std::string_view to_string(dtype t) { return detail::dtype_rows[static_cast<unsigned>(t)].name; }
/// Bytes of one element.
constexpr std::size_t size_of(dtype t) { return detail::dtype_rows[static_cast<unsigned>(t)].bytes; }

/// A number of at most eight bits that ops move and convert, but do not compute with.
constexpr bool is_narrow(dtype t) { return t >= dtype::f8e4m3fn && t <= dtype::u2; }
constexpr bool is_float(dtype t) { return t <= dtype::bf16 || (t >= dtype::f8e4m3fn && t <= dtype::f4e2m1); }
constexpr bool is_signed_integer(dtype t) {
  return (t >= dtype::i8 && t <= dtype::i64) || t == dtype::i4 || t == dtype::i2;
}
constexpr bool is_unsigned_integer(dtype t) {
  return (t >= dtype::u8 && t <= dtype::u64) || t == dtype::u4 || t == dtype::u2;
}
constexpr bool is_integer(dtype t) { return is_signed_integer(t) || is_unsigned_integer(t); }
/// An element is a handle to an object (see object.hpp).
constexpr bool is_object(dtype t) { return t >= dtype::string; }
/// A complex number of two f32 or f64, which is moved and stored only.
constexpr bool is_complex(dtype t) { return t == dtype::c64 || t == dtype::c128; }
/// Bits of an element that mean something: fewer than eight for some narrow numbers, which files pack.
constexpr int bits_of(dtype t) {
  if (t == dtype::i2 || t == dtype::u2) return 2;
  if (t == dtype::i4 || t == dtype::u4 || t == dtype::f4e2m1) return 4;
  return 8 * static_cast<int>(size_of(t));
}

template <std::size_t N> constexpr void put_text(inline_string<N>& out, dtype t) { out.append(to_string(t)); }

/// A set of dtypes as a bit mask: what an op accepts. `dims` marks ops whose computation also runs over symbolic
/// dimensions (shape arithmetic folds through the op's own text).
struct dtype_set {
  std::uint32_t mask = 0;
  constexpr bool contains(dtype t) const { return mask >> static_cast<unsigned>(t) & 1u; }
  constexpr bool dims() const { return mask >> 31 & 1u; }
  friend constexpr dtype_set operator|(dtype_set a, dtype_set b) { return {a.mask | b.mask}; }
  friend constexpr bool operator==(dtype_set, dtype_set) = default;
};

namespace dtypes {
inline constexpr dtype_set floats{0x000f}, integers{0x0ff0}, signed_integers{0x00f0}, unsigned_integers{0x0f00},
    boolean{0x1000}, numbers{0x0fff}, all{0x1fff}, narrow{0x7f'e000}, objects{0x1f80'0000}, dims{0x8000'0000u};
/// What ops accept that convert elements or read their values, and what those accept that only move them.
inline constexpr dtype_set convertible{0x7f'ffff}, movable{0x1fff'ffff};
}  // namespace dtypes

/// dtype of a C++ element type: `dtype_of<float> == dtype::f32`.
template <class T>
inline constexpr dtype dtype_of = [] {
  if constexpr (std::is_same_v<T, double>)
    return dtype::f64;
  else if constexpr (std::is_same_v<T, float>)
    return dtype::f32;
  else if constexpr (std::is_same_v<T, half>)
    return dtype::f16;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return dtype::bf16;
  else if constexpr (std::is_same_v<T, bool>)
    return dtype::boolean;
  else if constexpr (std::is_same_v<T, float8_e4m3fn>)
    return dtype::f8e4m3fn;
  else if constexpr (std::is_same_v<T, float8_e4m3fnuz>)
    return dtype::f8e4m3fnuz;
  else if constexpr (std::is_same_v<T, float8_e5m2>)
    return dtype::f8e5m2;
  else if constexpr (std::is_same_v<T, float8_e5m2fnuz>)
    return dtype::f8e5m2fnuz;
  else if constexpr (std::is_same_v<T, float8_e8m0>)
    return dtype::f8e8m0;
  else if constexpr (std::is_same_v<T, float4_e2m1>)
    return dtype::f4e2m1;
  else if constexpr (std::is_same_v<T, int4>)
    return dtype::i4;
  else if constexpr (std::is_same_v<T, uint4>)
    return dtype::u4;
  else if constexpr (std::is_same_v<T, int2>)
    return dtype::i2;
  else if constexpr (std::is_same_v<T, uint2>)
    return dtype::u2;
  else {
    static_assert(std::is_integral_v<T>, "kiln has no dtype for this element type");
    constexpr bool sign = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1)
      return sign ? dtype::i8 : dtype::u8;
    else if constexpr (sizeof(T) == 2)
      return sign ? dtype::i16 : dtype::u16;
    else if constexpr (sizeof(T) == 4)
      return sign ? dtype::i32 : dtype::u32;
    else
      return sign ? dtype::i64 : dtype::u64;
  }
}();

template <class T> struct type_tag { using type = T; };

namespace detail {

// The storage types that compute in C (see visit_compute).
template <class C, class F> constexpr decltype(auto) visit_storage_in(dtype t, F&& f) {
  if constexpr (std::is_same_v<C, float>) {
    switch (t) {
      case dtype::f16: return f(type_tag<half>{});
      case dtype::bf16: return f(type_tag<bfloat16>{});
      case dtype::f8e4m3fn: return f(type_tag<float8_e4m3fn>{});
      case dtype::f8e4m3fnuz: return f(type_tag<float8_e4m3fnuz>{});
      case dtype::f8e5m2: return f(type_tag<float8_e5m2>{});
      case dtype::f8e5m2fnuz: return f(type_tag<float8_e5m2fnuz>{});
      case dtype::f8e8m0: return f(type_tag<float8_e8m0>{});
      case dtype::f4e2m1: return f(type_tag<float4_e2m1>{});
      default: return f(type_tag<float>{});
    }
  } else if constexpr (std::is_same_v<C, std::int64_t>) {
    switch (t) {
      case dtype::i8: return f(type_tag<std::int8_t>{});
      case dtype::i16: return f(type_tag<std::int16_t>{});
      case dtype::i32: return f(type_tag<std::int32_t>{});
      case dtype::i4: return f(type_tag<int4>{});
      case dtype::i2: return f(type_tag<int2>{});
      default: return f(type_tag<std::int64_t>{});
    }
  } else if constexpr (std::is_same_v<C, std::uint64_t>) {
    switch (t) {
      case dtype::u8: return f(type_tag<std::uint8_t>{});
      case dtype::u16: return f(type_tag<std::uint16_t>{});
      case dtype::u32: return f(type_tag<std::uint32_t>{});
      case dtype::u4: return f(type_tag<uint4>{});
      case dtype::u2: return f(type_tag<uint2>{});
      default:  // handles of objects move as bits
        return f(type_tag<std::uint64_t>{});
    }
  } else {
    return f(type_tag<C>{});
  }
}

}  // namespace detail

/// Computations run in five types only: floats below 32 bits compute in float, integers in 64 bits, and the result is
/// rounded or wrapped when it is stored. Keeps instantiations few; two's complement makes the wrap exact.
template <class F> constexpr decltype(auto) visit_compute(dtype t, F&& f) {
  if (t == dtype::f64) return f(type_tag<double>{});
  if (is_float(t)) return f(type_tag<float>{});
  if (is_signed_integer(t)) return f(type_tag<std::int64_t>{});
  if (is_unsigned_integer(t) || is_object(t)) return f(type_tag<std::uint64_t>{});
  return f(type_tag<bool>{});
}

/// Calls `f(type_tag<T>{})` with the storage type T of `t`.
template <class F> constexpr decltype(auto) visit_storage(dtype t, F&& f) {
  if (t == dtype::f64) return f(type_tag<double>{});
  if (is_float(t)) return detail::visit_storage_in<float>(t, f);
  if (is_signed_integer(t)) return detail::visit_storage_in<std::int64_t>(t, f);
  if (is_unsigned_integer(t) || is_object(t)) return detail::visit_storage_in<std::uint64_t>(t, f);
  return f(type_tag<bool>{});
}

/// Whether values of compute type T serve dtype `t` without a change of representation class.
template <class T> constexpr bool computes(dtype t) {
  return visit_compute(t, []<class U>(type_tag<U>) { return std::is_same_v<T, U>; });
}

namespace detail {
/// The type a storage type computes in, where that is another one: float, or 64 bits.
template <class T> struct widened_storage {};
template <> struct widened_storage<half> { using type = float; };
template <> struct widened_storage<bfloat16> { using type = float; };
template <narrow_format F> struct widened_storage<small_float<F>> { using type = float; };
template <> struct widened_storage<float8_e8m0> { using type = float; };
template <int Bits, class Wide> struct widened_storage<small_integer<Bits, Wide>> { using type = Wide; };
template <class T>
concept widening = requires {
  typename widened_storage<T>::type;
};
}  // namespace detail

/// Converts between element types as ONNX Cast does: floats truncate toward zero into integers (out of range values are
/// clamped, NaN gives 0: C++ leaves both undefined), anything nonzero is true, integers wrap. Integers below eight bits
/// are made of the 64-bit integer a float gives, and wrap too.
template <class To, class From> constexpr To convert_value(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (detail::widening<From>) {
    return convert_value<To>(static_cast<typename detail::widened_storage<From>::type>(v));
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (detail::widening<To>) {
    using Wide = typename detail::widened_storage<To>::type;
    if constexpr (std::is_same_v<Wide, float>)
      return To(static_cast<float>(v));
    else
      return To(convert_value<Wide>(v));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (v != v) return 0;
    constexpr From top = static_cast<From>(std::uint64_t{1} << (sizeof(To) * 8 - 1)) * (std::is_signed_v<To> ? 1 : 2);
    if (v >= top) return static_cast<To>(~std::uint64_t{0} >> (64 - sizeof(To) * 8 + std::is_signed_v<To>));
    if constexpr (std::is_signed_v<To>) {
      if (v < -top) return static_cast<To>(std::uint64_t{1} << (sizeof(To) * 8 - 1));
    } else {
      // negative floats wrap through the signed type, as the hardware conversion every framework uses does
      if (v <= From(-1)) return static_cast<To>(convert_value<std::int64_t>(v));
    }
    return static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

}  // namespace kiln

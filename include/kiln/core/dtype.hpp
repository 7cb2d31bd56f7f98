#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "kiln/core/half.hpp"
#include "kiln/core/inline_string.hpp"

namespace kiln {

/// Element type of a tensor. The order is part of the saved format: append only.
enum class dtype : std::uint8_t { f64, f32, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, boolean };

inline constexpr std::size_t dtype_count = 13;

namespace detail {
struct dtype_row {
  std::string_view name;
  std::size_t bytes;
};
inline constexpr dtype_row dtype_rows[dtype_count] = {{"f64", 8}, {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"i8", 1},
                                                      {"i16", 2}, {"i32", 4}, {"i64", 8}, {"u8", 1},   {"u16", 2},
                                                      {"u32", 4}, {"u64", 8}, {"bool", 1}};
}  // namespace detail

/// The dtype's name: "f32", "i64", "bool", …
constexpr std::string_view to_string(dtype t) { return detail::dtype_rows[static_cast<unsigned>(t)].name; }
/// Bytes of one element.
constexpr std::size_t size_of(dtype t) { return detail::dtype_rows[static_cast<unsigned>(t)].bytes; }

constexpr bool is_float(dtype t) { return t <= dtype::bf16; }
constexpr bool is_signed_integer(dtype t) { return t >= dtype::i8 && t <= dtype::i64; }
constexpr bool is_unsigned_integer(dtype t) { return t >= dtype::u8 && t <= dtype::u64; }
constexpr bool is_integer(dtype t) { return t >= dtype::i8 && t <= dtype::u64; }

template <std::size_t N>
constexpr void put_text(inline_string<N>& out, dtype t) {
  out.append(to_string(t));
}

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
    boolean{0x1000}, numbers{0x0fff}, all{0x1fff}, dims{0x8000'0000u};
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

template <class T>
struct type_tag {
  using type = T;
};

/// Calls `f(type_tag<T>{})` with the storage type T of `t`.
template <class F>
constexpr decltype(auto) visit_storage(dtype t, F&& f) {
  switch (t) {
    case dtype::f64:
      return f(type_tag<double>{});
    case dtype::f32:
      return f(type_tag<float>{});
    case dtype::f16:
      return f(type_tag<half>{});
    case dtype::bf16:
      return f(type_tag<bfloat16>{});
    case dtype::i8:
      return f(type_tag<std::int8_t>{});
    case dtype::i16:
      return f(type_tag<std::int16_t>{});
    case dtype::i32:
      return f(type_tag<std::int32_t>{});
    case dtype::i64:
      return f(type_tag<std::int64_t>{});
    case dtype::u8:
      return f(type_tag<std::uint8_t>{});
    case dtype::u16:
      return f(type_tag<std::uint16_t>{});
    case dtype::u32:
      return f(type_tag<std::uint32_t>{});
    case dtype::u64:
      return f(type_tag<std::uint64_t>{});
    case dtype::boolean:
      break;
  }
  return f(type_tag<bool>{});
}

/// Computations run in five types only: f16 and bf16 compute in float, narrow integers in 64 bits, and the result is
/// rounded or wrapped when it is stored. Keeps instantiations few; two's complement makes the wrap exact.
template <class F>
constexpr decltype(auto) visit_compute(dtype t, F&& f) {
  if (t == dtype::f64) return f(type_tag<double>{});
  if (is_float(t)) return f(type_tag<float>{});
  if (is_signed_integer(t)) return f(type_tag<std::int64_t>{});
  if (is_unsigned_integer(t)) return f(type_tag<std::uint64_t>{});
  return f(type_tag<bool>{});
}

/// Whether values of compute type T serve dtype `t` without a change of representation class.
template <class T>
constexpr bool computes(dtype t) {
  return visit_compute(t, []<class U>(type_tag<U>) { return std::is_same_v<T, U>; });
}

/// Converts between element types as ONNX Cast does: floats truncate toward zero into integers (out of range values are
/// clamped, NaN gives 0: C++ leaves both undefined), anything nonzero is true, integers wrap.
template <class To, class From>
constexpr To convert_value(From v) {
  if constexpr (std::is_same_v<From, half> || std::is_same_v<From, bfloat16>) {
    return convert_value<To>(float(v));
  } else if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_same_v<To, half> || std::is_same_v<To, bfloat16>) {
    return To(static_cast<float>(v));
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

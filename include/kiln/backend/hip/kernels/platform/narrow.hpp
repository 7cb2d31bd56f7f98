#pragma once
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/core/narrow.hpp"

// Numbers of at most eight bits as elements: core's own storage types, converted where they are read and written.

namespace kiln::gpu {

template <> inline constexpr bool is_e5m2<float8_e5m2> = true;
template <kiln::detail::narrow_format F> struct sum_type<small_float<F>> { using type = float; };

/// How core converts a number that its class gives as a `Given`.
template <class T, class Given, class Computed> struct converted_number {
  using computed = Computed;
  static KILN_FN Given read(T x) { return static_cast<Given>(x); }
  static KILN_FN T write(Computed x) { return T(x); }
};
template <kiln::detail::narrow_format F>
struct short_number<small_float<F>> : converted_number<small_float<F>, float, float> {};
template <> struct short_number<float8_e8m0> : converted_number<float8_e8m0, float, float> {};
template <int Bits>
struct short_number<small_integer<Bits, std::int64_t>>
    : converted_number<small_integer<Bits, std::int64_t>, std::int64_t, i64> {};
template <int Bits>
struct short_number<small_integer<Bits, std::uint64_t>>
    : converted_number<small_integer<Bits, std::uint64_t>, std::uint64_t, u64> {};

#if KILN_FLOAT8
/// The same by the device's instructions, for what is no more than half a step beyond the greatest number: these give
/// that one for all that is greater, where core's conversion gives NaN or an infinity.
template <class T> struct short_number_here : converted_number<T, float, float> {
  static KILN_FN float read(T x) { return float_of_half(static_cast<u16>(two_halves<T>(x.bits))); }
  static KILN_FN T write(float x) {
    const u32 code = __builtin_bit_cast(u32, x), magnitude = code & 0x7fffffffu, sign = code >> 24 & 0x80u;
    T to;
    if constexpr (is_e5m2<T>) {
      if (magnitude >= 0x47700000u) {  // 61440, from which on infinity is nearest
        to.bits = static_cast<unsigned char>(sign | (magnitude > 0x7f800000u ? 0x7du : 0x7cu));
        return to;
      }
    } else if (magnitude > 0x43e80000u) {  // 464, which is rounded to 448
      to.bits = static_cast<unsigned char>(sign | 0x7fu);
      return to;
    }
    to.bits = short_of_float<T>(x);
    return to;
  }
};
template <> struct short_number<float8_e4m3fn> : short_number_here<float8_e4m3fn> {};
template <> struct short_number<float8_e5m2> : short_number_here<float8_e5m2> {};
#endif

}  // namespace kiln::gpu

#pragma once
#include "kiln/core/math/values.hpp"

namespace kiln {

namespace elementary {

/// Defined by core/simd.hpp: the operations of vectors that the language has no operator for.
template <class V> struct native_ops;

template <class T> inline constexpr bool is_f32 = same<element_t<T>, float>;
template <class T> inline constexpr int mantissa_bits = is_f32<T> ? 23 : 52;
template <class T> inline constexpr int exponent_bias = is_f32<T> ? 127 : 1023;
template <class T> inline constexpr auto sign_bit = element_t<bits_t<T>>(1) << (sizeof(element_t<T>) * 8 - 1);
template <class T> inline constexpr auto mantissa_mask = (element_t<bits_t<T>>(1) << mantissa_bits<T>)-1;
template <class T>
inline constexpr auto exponent_mask = element_t<bits_t<T>>(2 * exponent_bias<T> + 1) << mantissa_bits<T>;

/// 1.5 * 2^mantissa_bits: adding it rounds to an integer (half to even) that the low bits of the sum hold.
template <class T> inline constexpr element_t<T> shifter = is_f32<T> ? 12582912.0 : 6755399441055744.0;

template <class T> KILN_FN constexpr T infinity() { return splat<T>(from_bits<element_t<T>>(exponent_mask<T>)); }
template <class T> KILN_FN constexpr T quiet_nan() {
  return splat<T>(from_bits<element_t<T>>(exponent_mask<T> | (mantissa_mask<T> ^ (mantissa_mask<T> >> 1))));
}

/// `a < b ? a : b`, hence `b` where either is NaN.
template <class T> KILN_FN constexpr T lesser(T a, T b) {
  if constexpr (is_vec<T>)
    return native_ops<T>::lesser(a, b);
  else
    return a < b ? a : b;
}

/// `a > b ? a : b`, hence `b` where either is NaN.
template <class T> KILN_FN constexpr T greater(T a, T b) {
  if constexpr (is_vec<T>)
    return native_ops<T>::greater(a, b);
  else
    return a > b ? a : b;
}

/// Whether `x` is a NaN in constant evaluation, where C++ allows no arithmetic on it: return it before.
template <class T> KILN_FN constexpr bool constant_nan(T x) {
  if constexpr (is_vec<T>)
    return false;
  else
    return __builtin_is_constant_evaluated() && x != x;
}

/// Whether any lane holds.
template <class M> KILN_FN constexpr bool any(M m) {
  if constexpr (is_vec<M>)
    return native_ops<M>::any(m);
  else
    return m;
}

}  // namespace elementary
}  // namespace kiln

#pragma once
#include "kiln/core/math/format.hpp"
#include "kiln/core/math/select.hpp"

namespace kiln {

/// True in the lanes where `x` is not a number.
template <class T> KILN_FN constexpr mask_t<T> isnan(T x) {
  if constexpr (recorder<T>)
    return T::call("isnan", x);
  else if constexpr (narrow_float<T>)
    return isnan(static_cast<float>(x));
  else
    return x != x;
}

/// |x|: exact; the sign bit of a float is cleared, also of a NaN; the most negative integer is its own magnitude, as in
/// two's complement.
template <class T> KILN_FN constexpr T abs(T x) {
  if constexpr (recorder<T>) {
    return T::call("abs", x);
  } else if constexpr (narrow_float<T>) {
    return T(abs(static_cast<float>(x)));
  } else if constexpr (floating<T>) {
    return from_bits<T>(bits(x) & ~elementary::sign_bit<T>);
  } else if constexpr (integral<T> && (is_vec<T> || sizeof(T) >= 4)) {
    return select(x < splat<T>(0), from_bits<T>(splat<bits_t<T>>(0) - bits(x)), x);
  } else {
    return select(x < splat<T>(0), T(splat<T>(0) - x), x);
  }
}

/// Magnitude of `x` with the sign of `s`: exact.
template <class T> KILN_FN constexpr T copysign(T x, T s) {
  if constexpr (recorder<T>)
    return T::call("copysign", x, s);
  else
    return from_bits<T>((bits(x) & ~elementary::sign_bit<T>) | (bits(s) & elementary::sign_bit<T>));
}

/// The lesser of two; NaN if either is NaN, as in ONNX Min and numpy.minimum. A class may bring `smaller(a, b)` instead
/// of `<`.
template <class T> KILN_FN constexpr T min(T a, T b) {
  if constexpr (recorder<T>)
    return T::call("min", a, b);
  else if constexpr (floating<T>)
    return select(a != a, a, elementary::lesser(a, b));
  else if constexpr (requires { smaller(a, b); })
    return smaller(a, b);
  else if constexpr (narrow_float<T>)
    return T(min(static_cast<float>(a), static_cast<float>(b)));
  else
    return select(a < b, a, b);
}

/// The greater of two; NaN if either is NaN, as in ONNX Max and numpy.maximum. A class may bring `larger(a, b)` instead
/// of `<`.
template <class T> KILN_FN constexpr T max(T a, T b) {
  if constexpr (recorder<T>)
    return T::call("max", a, b);
  else if constexpr (floating<T>)
    return select(a != a, a, elementary::greater(a, b));
  else if constexpr (requires { larger(a, b); })
    return larger(a, b);
  else if constexpr (narrow_float<T>)
    return T(max(static_cast<float>(a), static_cast<float>(b)));
  else
    return select(b < a, a, b);
}

/// -1, 0 or 1 by the sign of `x`; keeps NaN and the sign of zero.
template <class T> KILN_FN constexpr T sign(T x) {
  if constexpr (recorder<T>)
    return T::call("sign", x);
  else if constexpr (narrow_float<T>)
    return T(sign(static_cast<float>(x)));
  else if constexpr (floating<T>)
    return select(abs(x) > splat<T>(0), copysign(splat<T>(1), x), x);
  else
    return select(splat<T>(0) < x, splat<T>(1), select(x < splat<T>(0), splat<T>(-1), splat<T>(0)));
}

/// True in the lanes where `x` is an infinity of either sign.
template <class T> KILN_FN constexpr mask_t<T> isinf(T x) {
  if constexpr (recorder<T>)
    return T::call("isinf", x);
  else if constexpr (narrow_float<T>)
    return isinf(static_cast<float>(x));
  else
    return abs(x) == elementary::infinity<T>();
}

/// Nearest integer, ties to even: exact; keeps the sign of zero, infinities and NaN.
template <class T> KILN_FN constexpr T round(T x) {
  if constexpr (recorder<T>) {
    return T::call("round", x);
  } else if constexpr (narrow_float<T>) {
    return T(round(static_cast<float>(x)));
  } else if constexpr (integral<T>) {
    return x;
  } else {
    if (elementary::constant_nan(x)) return x;
    const T magnitude = abs(x), power = splat<T>(elementary::is_f32<T> ? 0x1p23 : 0x1p52);
    const T rounded = (magnitude + power) - power;  // no fraction bits are left in the sum
    return select(magnitude < power, copysign(rounded, x), x);
  }
}

/// Greatest integer not above `x`: exact; keeps the sign of zero, infinities and NaN.
template <class T> KILN_FN constexpr T floor(T x) {
  if constexpr (recorder<T>)
    return T::call("floor", x);
  else if constexpr (narrow_float<T>)
    return T(floor(static_cast<float>(x)));
  else if constexpr (integral<T>)
    return x;
  else {
    if (elementary::constant_nan(x)) return x;
    const T nearest = round(x);
    return copysign(select(nearest > x, nearest - splat<T>(1), nearest), x);
  }
}

/// Least integer not below `x`: exact; keeps the sign of zero (-0.5 gives -0), infinities and NaN.
template <class T> KILN_FN constexpr T ceil(T x) {
  if constexpr (recorder<T>)
    return T::call("ceil", x);
  else if constexpr (narrow_float<T>)
    return T(ceil(static_cast<float>(x)));
  else if constexpr (integral<T>)
    return x;
  else {
    if (elementary::constant_nan(x)) return x;
    const T nearest = round(x);
    return copysign(select(nearest < x, nearest + splat<T>(1), nearest), x);
  }
}

/// `x` without its fraction (towards zero): exact; keeps the sign of zero, infinities and NaN.
template <class T> KILN_FN constexpr T trunc(T x) {
  if constexpr (recorder<T>)
    return T::call("trunc", x);
  else if constexpr (narrow_float<T>)
    return T(trunc(static_cast<float>(x)));
  else if constexpr (integral<T>)
    return x;
  else
    return copysign(floor(abs(x)), x);
}

}  // namespace kiln

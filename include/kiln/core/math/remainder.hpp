#pragma once
#include "kiln/core/math/root.hpp"

namespace kiln {

namespace elementary {

/// Exponent of a positive finite `x` as T, denormals included.
template <class T> KILN_FN constexpr T exponent_of(T x) {
  constexpr element_t<T> lift = is_f32<T> ? 0x1p24 : 0x1p54;
  const auto tiny = x < splat<T>(from_bits<element_t<T>>(element_t<bits_t<T>>(1) << mantissa_bits<T>));
  const T biased =
      from_bits<T>((bits(x * select(tiny, splat<T>(lift), splat<T>(1))) >> mantissa_bits<T>)+bits(shifter<T>));
  return biased - splat<T>(shifter<T> + exponent_bias<T>) - select(tiny, splat<T>(is_f32<T> ? 24 : 54), splat<T>(0));
}

/// 2^n for an integer n within the exponents of normal numbers.
template <class T> KILN_FN constexpr T power_of_two(T n) {
  return from_bits<T>((bits(n + splat<T>(shifter<T> + exponent_bias<T>)) - bits(shifter<T>)) << mantissa_bits<T>);
}

/// a modulo b for finite a >= 0, b > 0: long division by as many quotient bits at a time as are exact.
template <class T> KILN_FN constexpr T long_division(T a, T b) {
  T r = a;
  const T zero = splat<T>(0), digits = splat<T>(mantissa_bits<T> - 1), exponent_of_b = exponent_of(b);
  for (auto active = r >= b; any(active); active = r >= b) {
    const T k = max(exponent_of(r) - exponent_of_b - digits, zero), k1 = floor(k * splat<T>(0.5));
    const T step = b * power_of_two(k1) * power_of_two(k - k1), q = trunc(r / step);
    // Near the greatest number a rounded product would overflow.
    const auto huge = r > splat<T>(is_f32<T> ? 0x1p120 : 0x1p1000);
    const T down = select(huge, splat<T>(0.25), splat<T>(1)), up = select(huge, splat<T>(4), splat<T>(1));
    const auto product = two_product(q, step * down);
    const T left = ((r * down - product.high) - product.low) * up;
    const T next = select(left < zero, left + step, left);
    r = select(active, next, r);
  }
  return r;
}

}  // namespace elementary

/// Remainder of the division that truncates: sign of `a`, exact (C's fmod; ONNX Mod with fmod=1). Integers: `b` must
/// not be 0.
template <class T> KILN_FN constexpr T fmod(T a, T b) {
  if constexpr (recorder<T>)
    return T::call("fmod", a, b);
  else if constexpr (narrow_float<T>)
    return T(fmod(static_cast<float>(a), static_cast<float>(b)));
  else if constexpr (!floating<T>) {
    return a % b;
  } else {
    using namespace elementary;
    const T x = abs(a), y = abs(b), zero = splat<T>(0), inf = infinity<T>();
    const auto defined = logical_and(x<inf, y> zero);
    const auto divisible = logical_and(defined, y < inf);
    const T r = long_division(select(divisible, x, zero), select(divisible, y, splat<T>(1)));
    const T result = select(divisible, copysign(r, a), a);  // an infinite divisor leaves a
    return select(logical_and(defined, y == y), result, select(x == x, select(y == y, quiet_nan<T>(), b), a));
  }
}

/// Remainder of the division that floors: sign of `b`, as Python's and ONNX Mod's. Integers: `b` must not be 0.
template <class T> KILN_FN constexpr T mod(T a, T b) {
  if constexpr (recorder<T>)
    return T::call("mod", a, b);
  else if constexpr (narrow_float<T>)
    return T(mod(static_cast<float>(a), static_cast<float>(b)));
  else {
    const T r = fmod(a, b), zero = splat<T>(0);
    if constexpr (floating<T>) {
      if (elementary::constant_nan(r)) return r;
      const auto wrong = logical_and(r != zero, logical_xor(r < zero, b < zero));
      return select(r == zero, copysign(r, b), select(wrong, r + b, r));
    } else {
      return select(logical_and(r != zero, logical_xor(r < zero, b < zero)), T(r + b), r);
    }
  }
}

}  // namespace kiln

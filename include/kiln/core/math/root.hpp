#pragma once
#include "kiln/core/math/basic.hpp"

namespace kiln {

namespace elementary {

/// a * b, also in constant evaluation, where C++ allows no overflow.
template <class T> KILN_FN constexpr T times(T a, T b) {
  if constexpr (!is_vec<T>) {
    constexpr T greatest = from_bits<T>(exponent_mask<T> - 1);
    if (__builtin_is_constant_evaluated() && abs(b) > T(1) && abs(a) < infinity<T>() && abs(a) > greatest / abs(b))
      return (a < T(0)) == (b < T(0)) ? infinity<T>() : -infinity<T>();
  }
  return a * b;
}

template <class T> struct two_parts { T high, low; };

/// high + low == a + b exactly (Knuth 1969).
template <class T> KILN_FN constexpr two_parts<T> two_sum(T a, T b) {
  const T high = a + b, t = high - a;
  return {high, (a - (high - t)) + (b - t)};
}

/// high + low == a * b exactly while nothing overflows or underflows (Dekker 1971), without fused multiply-add.
template <class T> KILN_FN constexpr two_parts<T> two_product_split(T a, T b) {
  using U = element_t<bits_t<T>>;
  // Rounding, not cutting, leaves a lower part of so few bits that the product of two is exact.
  constexpr U tie = U(1) << (mantissa_bits<T> / 2), upper = ~(2 * tie - 1);
  const T high = a * b;
  const T a1 = from_bits<T>((bits(a) + tie) & upper), a2 = a - a1, b1 = from_bits<T>((bits(b) + tie) & upper),
          b2 = b - b1;
  return {high, a2 * b2 - (((high - a1 * b1) - a2 * b1) - a1 * b2)};
}

/// a + b rounded to odd: an inexact sum gets an odd last bit, so that a later rounding is not a second one.
template <class T> KILN_SLOW constexpr T add_to_odd(T a, T b) {
  const auto sum = two_sum(a, b);
  const auto pattern = bits(sum.high);
  if (sum.low == T(0) || (pattern & 1)) return sum.high;
  return from_bits<T>((sum.low > T(0)) == (sum.high > T(0)) ? pattern + 1 : pattern - 1);
}

/// fma for constant evaluation: exact for float; for double while no intermediate underflows (Boldo, Melquiond 2008).
template <class T> KILN_SLOW constexpr T software_fma(T a, T b, T c) {
  const T inf = infinity<T>(), towards = copysign(T(1), a) * copysign(inf, b);
  if (a != a || b != b || c != c) return quiet_nan<T>();
  if (abs(a) == inf || abs(b) == inf) return a == 0 || b == 0 || c == -towards ? quiet_nan<T>() : towards;
  if (abs(c) == inf) return c;
  if constexpr (is_f32<T>) {
    const double sum = add_to_odd(static_cast<double>(a) * static_cast<double>(b), static_cast<double>(c));
    return abs(sum) < 0x1.ffffffp127 ? static_cast<float>(sum) : sum > 0 ? inf : -inf;
  } else {
    if (a == 0 || b == 0) return a * b + c;
    if (abs(c) > T(0x1p1000) || abs(a) > T(0x1p500) || abs(b) > T(0x1p500)) {  // a part of the product may overflow
      const T down = 0x1p-520;
      return times(abs(a) > abs(b) ? software_fma(a * down, b, c * down) : software_fma(a, b * down, c * down),
                   1 / down);
    }
    const auto product = two_product_split(a, b);
    const auto tail = two_sum(c, product.low), head = two_sum(product.high, tail.high);
    return head.high + add_to_odd(head.low, tail.low);
  }
}

/// Square root for constant evaluation, correctly rounded: Newton's iteration, then the exact residual decides the last
/// bit.
template <class T> KILN_SLOW constexpr T software_sqrt(T x) {
  if constexpr (is_f32<T>) {
    return static_cast<float>(software_sqrt(static_cast<double>(x)));
  } else {
    if (!(x > 0) || x == infinity<T>()) return x == 0 || x > 0 ? x : quiet_nan<T>();
    T scale = 1;
    while (x < 1) x *= 4, scale /= 2;
    while (x >= 4) x /= 4, scale *= 2;
    T y = (x + 1) / 2;
    for (int step = 0; step < 6; ++step) y = (y + x / y) / 2;
    constexpr T ulp = 0x1p-52;
    while (software_fma(y, y, -x) > 0) y -= ulp;  // now y <= sqrt(x)
    while (software_fma(y + ulp, y + ulp, -x) <= 0) y += ulp;
    return (software_fma(-y, y, x) > y * ulp ? y + ulp : y) * scale;
  }
}

}  // namespace elementary

/// a * b + c rounded once. One instruction where `has_fma`, else a slow library call. In constant evaluation a double
/// result below 1e-290 may be off in its last bit.
template <class T> KILN_FN constexpr T fma(T a, T b, T c) {
  if constexpr (recorder<T>) {
    return T::call("fma", a, b, c);
  } else if constexpr (is_vec<T>) {
    return elementary::native_ops<T>::fma(a, b, c);
  } else {
    if (__builtin_is_constant_evaluated()) return elementary::software_fma(a, b, c);
    if constexpr (elementary::is_f32<T>)
      return KILN_LIBM(fmaf)(a, b, c);
    else
      return KILN_LIBM(fma)(a, b, c);
  }
}

namespace elementary {

/// a * b + c, fused where `has_fma`: what the polynomials are made of.
template <class T> KILN_FN constexpr T mad(T a, T b, T c) {
  if constexpr (has_fma)
    return fma(a, b, c);
  else
    return a * b + c;
}

/// c0 + c1 x + c2 x^2 + …
template <class T, class... C> KILN_FN constexpr T polynomial(T x, double c0, C... c) {
  if constexpr (sizeof...(C) == 0)
    return splat<T>(c0);
  else
    return mad(x, polynomial(x, c...), splat<T>(c0));
}

/// high + low == a * b exactly while nothing overflows or underflows.
template <class T> KILN_FN constexpr two_parts<T> two_product(T a, T b) {
  if constexpr (has_fma) {
    const T high = a * b;
    return {high, fma(a, b, -high)};
  } else {
    return two_product_split(a, b);
  }
}

}  // namespace elementary

/// Square root, correctly rounded; NaN below zero, -0 stays.
template <class T> KILN_FN constexpr T sqrt(T x) {
  if constexpr (recorder<T>) {
    return T::call("sqrt", x);
  } else if constexpr (narrow_float<T>) {
    return T(sqrt(static_cast<float>(x)));
  } else if constexpr (is_vec<T>) {
    return elementary::native_ops<T>::sqrt(x);
  } else {
    if (__builtin_is_constant_evaluated()) return elementary::software_sqrt(x);
    if constexpr (elementary::is_f32<T>)
      return KILN_LIBM(sqrtf)(x);
    else
      return KILN_LIBM(sqrt)(x);
  }
}

/// 1 / x, correctly rounded.
template <class T> KILN_FN constexpr T recip(T x) {
  if constexpr (recorder<T>)
    return T::call("recip", x);
  else if constexpr (narrow_float<T>)
    return T(recip(static_cast<float>(x)));
  else {
    if constexpr (!is_vec<T>)
      if (__builtin_is_constant_evaluated() && abs(x) <= T(elementary::is_f32<T> ? 0x1p-128 : 0x1p-1024))
        return copysign(elementary::infinity<T>(), x);
    if (elementary::constant_nan(x)) return x;
    return splat<T>(1) / x;
  }
}

/// 1 / sqrt(x): error below 1.5 ulp.
template <class T> KILN_FN constexpr T rsqrt(T x) {
  if constexpr (recorder<T>)
    return T::call("rsqrt", x);
  else if constexpr (narrow_float<T>)
    return T(rsqrt(static_cast<float>(x)));
  else
    return recip(sqrt(x));
}

}  // namespace kiln

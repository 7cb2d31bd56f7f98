#pragma once
#include "kiln/core/math/root.hpp"

namespace kiln {

namespace elementary {

/// atan(y / x) for y, x >= 0, infinities and zeros included.
template <class T> KILN_FN constexpr T atan_of_ratio(T y, T x) {
  const T inf = infinity<T>(), zero = splat<T>(0), one = splat<T>(1), quarter = splat<T>(0.25);
  const T limit = splat<T>(is_f32<T> ? 0x1p120 : 0x1p1000);
  const auto huge = logical_or(y > limit, x > limit), diagonal = logical_and(y == inf, x == inf);
  const T b = select(diagonal, one, select(huge, y * quarter, y)),
          a = select(diagonal, one, select(huge, x * quarter, x));
  const auto steep = b > a * splat<T>(2.414213562373095), middle = b > a * splat<T>(0.4142135623730950);
  const T numerator = select(steep, -a, select(middle, b - a, b));
  const T divisor = select(steep, b, select(middle, b + a, a)), denominator = select(b + a == zero, one, divisor);
  const T t = numerator / denominator, z = t * t;
  T p{};
  if constexpr (is_f32<T>)
    p = polynomial(z, -0.333333154892200881, 0.199984883484145789, -0.142438266006606684, 0.105958277442257045,
                   -0.0608298978208337357);
  else
    p = polynomial(z, -0.333333333333333276, 0.199999999999976889, -0.142857142853904935, 0.11111111088332731,
                   -0.0909090815012218905, 0.076922828852384286, -0.0666622862811666436, 0.058770401333046585,
                   -0.0521852252630958288, 0.0450403026590305022, -0.0334856627409961659, 0.0152065462653458805);
  const auto half_turn_low = splat<T>(is_f32<T> ? -4.371139000186241e-8 : 6.123233995736766e-17);
  const T high = select(steep, splat<T>(1.5707963267948966), select(middle, splat<T>(0.7853981633974483), zero));
  const T low = select(steep, half_turn_low, select(middle, splat<T>(0.5) * half_turn_low, zero));
  return high + (mad(t * z, p, low) + t);
}

/// asin(s) = s + s z p for z = s^2 <= 1/4.
template <class T> KILN_FN constexpr T asin_polynomial(T s, T z) {
  T p{};
  if constexpr (is_f32<T>)
    p = polynomial(z, 0.166666598720592908, 0.0750051091390097951, 0.0445157205255301313, 0.0318176107957834301,
                   0.0144026076981012604, 0.0375651981171030474);
  else
    p = polynomial(z, 0.166666666666667624, 0.0749999999997026151, 0.0446428571751212832, 0.0303819426836063654,
                   0.0223722156602282775, 0.0173516000993415924, 0.0139809612993914175, 0.0113977776412458078,
                   0.0107865179844342606, 0.00368308900955369053, 0.0217633751573772816, -0.0210771067707574685,
                   0.0326767693146603141);
  return mad(s * z, p, s);
}

}  // namespace elementary

/// Inverse tangent: error below 2 ulp; within [-pi/2, pi/2].
template <class T> KILN_FN constexpr T atan(T x) {
  if constexpr (recorder<T>)
    return T::call("atan", x);
  else if constexpr (narrow_float<T>)
    return T(atan(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "atan needs a floating type: convert integers first");
    if (elementary::constant_nan(x)) return x;
    return copysign(elementary::atan_of_ratio(abs(x), splat<T>(1)), x);
  }
}

/// Angle of the point (x, y), within [-pi, pi]: error below 2 ulp; zeros and infinities as in C.
template <class T> KILN_FN constexpr T atan2(T y, T x) {
  if constexpr (recorder<T>)
    return T::call("atan2", y, x);
  else if constexpr (narrow_float<T>)
    return T(atan2(static_cast<float>(y), static_cast<float>(x)));
  else {
    static_assert(floating<T>, "atan2 needs a floating type: convert integers first");
    if (elementary::constant_nan(x)) return x;
    if (elementary::constant_nan(y)) return y;
    const T a = elementary::atan_of_ratio(abs(y), abs(x));
    const T turn_low = splat<T>(elementary::is_f32<T> ? -8.742278000372481e-8 : 1.2246467991473532e-16);
    const T back = splat<T>(3.141592653589793) - (a - turn_low);
    return copysign(select(copysign(splat<T>(1), x) < splat<T>(0), back, a), y);
  }
}

/// Inverse sine: error below 2.5 ulp; NaN outside [-1, 1].
template <class T> KILN_FN constexpr T asin(T x) {
  if constexpr (recorder<T>)
    return T::call("asin", x);
  else if constexpr (narrow_float<T>)
    return T(asin(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "asin needs a floating type: convert integers first");
    if constexpr (!is_vec<T>)
      if (__builtin_is_constant_evaluated() && !(abs(x) <= T(1))) return elementary::quiet_nan<T>();
    const T a = abs(x);
    const auto upper = a > splat<T>(0.5);
    const T z = select(upper, (splat<T>(1) - a) * splat<T>(0.5), a * a), s = select(upper, sqrt(z), a);
    const T r = elementary::asin_polynomial(s, z);
    const T low = splat<T>(elementary::is_f32<T> ? -4.371139000186241e-8 : 6.123233995736766e-17);
    return copysign(select(upper, splat<T>(1.5707963267948966) - (r + r - low), r), x);
  }
}

/// Inverse cosine: error below 2 ulp; NaN outside [-1, 1].
template <class T> KILN_FN constexpr T acos(T x) {
  if constexpr (recorder<T>)
    return T::call("acos", x);
  else if constexpr (narrow_float<T>)
    return T(acos(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "acos needs a floating type: convert integers first");
    if constexpr (!is_vec<T>)
      if (__builtin_is_constant_evaluated() && !(abs(x) <= T(1))) return elementary::quiet_nan<T>();
    const T a = abs(x);
    const auto upper = a > splat<T>(0.5);
    const T z = select(upper, (splat<T>(1) - a) * splat<T>(0.5), a * a), s = select(upper, sqrt(z), x);
    const T r = elementary::asin_polynomial(s, z), half_turn = splat<T>(1.5707963267948966);
    const T low = splat<T>(elementary::is_f32<T> ? -4.371139000186241e-8 : 6.123233995736766e-17);
    const T outer = select(x < splat<T>(0), splat<T>(2) * (half_turn - (r - low)), r + r);
    return select(upper, outer, half_turn - (r - low));
  }
}

}  // namespace kiln

#pragma once
#include "kiln/core/math/root.hpp"

namespace kiln {

namespace elementary {

/// y * 2^n rounded once, for t = n + shifter, y near 1 and n within two of the exponent's range.
template <class T> KILN_FN constexpr T scale_by_power(T y, T t) {
  if constexpr (is_vec<T>) {
    if constexpr (native_ops<T>::has_scale) return native_ops<T>::scale(y, t - splat<T>(shifter<T>));
  }
  // Two factors: the first product is exact, so a denormal result is rounded once.
  constexpr auto offset = bits(shifter<T>) - element_t<bits_t<T>>(2 * exponent_bias<T>);
  const auto n = bits(t) - offset;  // n + 2 bias, never negative
  const auto half = n >> 1;
  return times(y * from_bits<T>(half << mantissa_bits<T>), from_bits<T>((n - half) << mantissa_bits<T>));
}

/// x = n ln 2 + r: gives r and t = n + shifter.
template <class T> struct reduced { T r, t; };

template <class T> KILN_FN constexpr reduced<T> reduce_by_ln2(T x) {
  const T t = mad(x, splat<T>(1.4426950408889634), splat<T>(shifter<T>)), n = t - splat<T>(shifter<T>);
  // The upper part of ln 2 has so few bits that its product with n is exact.
  const T r = mad(n, splat<T>(is_f32<T> ? -0.693145751953125 : -6.93147180369123816490e-01), x);
  return {mad(n, splat<T>(is_f32<T> ? -1.42860682030941723212e-6 : -1.90821492927058770002e-10), r), t};
}

/// e^r - 1 for |r| <= ln 2 / 2.
template <class T> KILN_FN constexpr T expm1_polynomial(T r) {
  if constexpr (is_f32<T>) {
    const T q = polynomial(r, 0.500000004693711862, 0.166666668192392466, 0.0416663522992867367, 0.00833327250227536381,
                           0.00139412061596841757, 0.000199144904334711481);
    return mad(r * r, q, r);
  } else {
    const T q =
        polynomial(r, 0.5, 0.166666666666666768, 0.0416666666666667021, 0.0083333333333214364, 0.00138888888888664723,
                   0.000198412698866730291, 0.0000248015873612843982, 2.75572436095589626e-6, 2.75572421332744566e-7,
                   2.51092616763436217e-8, 2.09246378272375507e-9);
    return mad(r * r, q, r);
  }
}

/// e^r for |r| <= ln 2 / 2.
template <class T> KILN_FN constexpr T exp_polynomial(T r) {
  if constexpr (is_f32<T>) {
    return polynomial(r, 1.0, 1.0, 0.500000009629002301, 0.166665177118883376, 0.0416662022301293375,
                      0.00836902482913322971, 0.00139507295396029196);
  } else {
    return expm1_polynomial(r) + splat<T>(1);
  }
}

/// x kept within [low, high], NaN kept.
template <class T> KILN_FN constexpr T within(T x, double low, double high) {
  return greater(splat<T>(low), lesser(splat<T>(high), x));
}

/// 2^(x + rest) for x within two of the exponent's range.
template <class T> KILN_FN constexpr T exp2_of_parts(T x, T rest) {
  const T t = x + splat<T>(shifter<T>), r = (x - (t - splat<T>(shifter<T>))) + rest;
  T q{};
  if constexpr (is_f32<T>)
    q = polynomial(r, 0.693147180541672362, 0.240226510758581697, 0.0555041096256861758, 0.00961803691026203647,
                   0.00133334307762950742, 0.000154671104972787323, 0.0000153149505104891041);
  else
    q = polynomial(r, 0.693147180559945308, 0.240226506959100712, 0.0555041086648216983, 0.00961812910762849519,
                   0.00133335581463904799, 0.000154035303933410804, 0.0000152527338561938973, 1.32154868330772161e-6,
                   1.01780512286192658e-7, 7.05488824238215234e-9, 4.45667056941907724e-10, 2.57418208422919178e-11);
  return scale_by_power(mad(r, q, splat<T>(1)), t);
}

}  // namespace elementary

/// e^x, also denormal: error below 1 ulp for float (1.2 without fused products), 1.1 for double; overflows to infinity.
template <class T> KILN_FN constexpr T exp(T x) {
  if constexpr (recorder<T>)
    return T::call("exp", x);
  else if constexpr (narrow_float<T>)
    return T(exp(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "exp needs a floating type: convert integers first");
    using namespace elementary;
    if (constant_nan(x)) return x;
    const auto [r, t] = reduce_by_ln2(is_f32<T> ? within(x, -105.0, 89.0) : within(x, -746.0, 710.0));
    return scale_by_power(exp_polynomial(r), t);
  }
}

/// 2^x: error below 1.2 ulp over the whole range, exact for integers; denormal results included.
template <class T> KILN_FN constexpr T exp2(T x) {
  if constexpr (recorder<T>)
    return T::call("exp2", x);
  else if constexpr (narrow_float<T>)
    return T(exp2(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "exp2 needs a floating type: convert integers first");
    using namespace elementary;
    if (constant_nan(x)) return x;
    return exp2_of_parts(is_f32<T> ? within(x, -151.0, 129.0) : within(x, -1076.0, 1025.0), splat<T>(0));
  }
}

/// e^x - 1: error below 2 ulp, also near zero.
template <class T> KILN_FN constexpr T expm1(T x) {
  if constexpr (recorder<T>)
    return T::call("expm1", x);
  else if constexpr (narrow_float<T>)
    return T(expm1(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "expm1 needs a floating type: convert integers first");
    using namespace elementary;
    if (constant_nan(x)) return x;
    const auto [r, t] = reduce_by_ln2(is_f32<T> ? within(x, -18.0, 89.0) : within(x, -38.0, 710.0));
    // 2^n (p + 1 - 2^-n); beyond n = 100 the subtrahend is lost anyway.
    const T few = select(t > splat<T>(shifter<T> + 100), splat<T>(shifter<T> + 100), t);
    const auto inverse = (bits(shifter<T>) + exponent_bias<T> - bits(few)) << mantissa_bits<T>;
    const T y = expm1_polynomial(r) + (splat<T>(1) - from_bits<T>(inverse));
    return copysign(scale_by_power(y, t), x);
  }
}

/// 1 / (1 + e^-x): error below 3 ulp, also where the result is tiny.
template <class T> KILN_FN constexpr T sigmoid(T x) {
  if constexpr (recorder<T>)
    return T::call("sigmoid", x);
  else if constexpr (narrow_float<T>)
    return T(sigmoid(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "sigmoid needs a floating type: convert integers first");
    if (elementary::constant_nan(x)) return x;
    const T e = exp(-abs(x));
    return select(x < splat<T>(0), e, splat<T>(1)) / (splat<T>(1) + e);
  }
}

}  // namespace kiln

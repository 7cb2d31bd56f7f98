#pragma once
#include "kiln/core/math/exp.hpp"
#include "kiln/core/math/log.hpp"

namespace kiln {

/// Hyperbolic tangent: error below 6 ulp (4e-7) for float, 3 ulp for double; never beyond 1, which it reaches. A
/// float takes one rational function (own minimax fit, 2.3e-9) and one division.
template <class T> KILN_FN constexpr T tanh(T x) {
  if constexpr (recorder<T>)
    return T::call("tanh", x);
  else if constexpr (narrow_float<T>)
    return T(tanh(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "tanh needs a floating type: convert integers first");
    if (elementary::constant_nan(x)) return x;
    using namespace elementary;
    if constexpr (is_f32<T>) {
      const T c = within(x, -9.06, 9.06), z = c * c;
      const T p = polynomial(z, 0.9999999994820465, 0.13679980110348582, 0.0038684149625306197, 2.8009923440723049e-5,
                             3.0595285997381655e-8, -1.2216228736216448e-11);
      const T q =
          polynomial(z, 1.0, 0.47013312545907155, 0.027246140884743013, 0.00039388058225089813, 1.2875912100140016e-6);
      return within(c * p / q, -1.0, 1.0);
    } else {
      const T e = expm1(splat<T>(2) * within(abs(x), 0.0, 22.0));
      return copysign(e / (e + splat<T>(2)), x);
    }
  }
}

/// Hyperbolic sine: error below 3 ulp.
template <class T> KILN_FN constexpr T sinh(T x) {
  if constexpr (recorder<T>)
    return T::call("sinh", x);
  else if constexpr (narrow_float<T>)
    return T(sinh(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "sinh needs a floating type: convert integers first");
    if (elementary::constant_nan(x)) return x;
    const T a = abs(x), half = splat<T>(0.5), limit = splat<T>(30);
    const T e = expm1(elementary::lesser(limit, a)), root = exp(half * a);
    const T y = half * (e + e / (e + splat<T>(1)));
    return copysign(select(a > limit, elementary::times(half * root, root), y), x);
  }
}

/// Hyperbolic cosine: error below 3.5 ulp.
template <class T> KILN_FN constexpr T cosh(T x) {
  if constexpr (recorder<T>)
    return T::call("cosh", x);
  else if constexpr (narrow_float<T>)
    return T(cosh(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "cosh needs a floating type: convert integers first");
    if (elementary::constant_nan(x)) return x;
    const T half = splat<T>(0.5), root = exp(half * abs(x));
    return elementary::times(half * root, root) + half / elementary::times(root, root);
  }
}

/// Inverse hyperbolic tangent: error below 2.5 ulp; infinite at 1 and -1, NaN beyond.
template <class T> KILN_FN constexpr T atanh(T x) {
  if constexpr (recorder<T>)
    return T::call("atanh", x);
  else if constexpr (narrow_float<T>)
    return T(atanh(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "atanh needs a floating type: convert integers first");
    if (elementary::constant_nan(x)) return x;
    const T a = abs(x), one = splat<T>(1);
    if constexpr (!is_vec<T>)
      if (__builtin_is_constant_evaluated() && a >= one)
        return a > one ? elementary::quiet_nan<T>() : copysign(elementary::infinity<T>(), x);
    return copysign(splat<T>(0.5) * log1p((a + a) / (one - a)), x);
  }
}

/// Inverse hyperbolic sine: error below 2.5 ulp.
template <class T> KILN_FN constexpr T asinh(T x) {
  if constexpr (recorder<T>)
    return T::call("asinh", x);
  else if constexpr (narrow_float<T>)
    return T(asinh(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "asinh needs a floating type: convert integers first");
    if (elementary::constant_nan(x)) return x;
    const T one = splat<T>(1), a = abs(x);
    const auto large = a > splat<T>(elementary::is_f32<T> ? 0x1p14 : 0x1p30);
    const T few = select(large, one, a), square = few * few;
    const T y = log1p(select(large, a - one, a + square / (one + sqrt(one + square))));
    return copysign(select(large, y + splat<T>(0.6931471805599453), y), x);
  }
}

/// Inverse hyperbolic cosine: error below 2.5 ulp; NaN below 1.
template <class T> KILN_FN constexpr T acosh(T x) {
  if constexpr (recorder<T>)
    return T::call("acosh", x);
  else if constexpr (narrow_float<T>)
    return T(acosh(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "acosh needs a floating type: convert integers first");
    if (elementary::constant_nan(x)) return x;
    const T one = splat<T>(1), t = x - one;
    const auto large = x > splat<T>(elementary::is_f32<T> ? 0x1p14 : 0x1p30), outside = x < one;
    const T few = select(logical_or(large, outside), one, x);
    const T y = log1p(select(large, t, (few - one) + sqrt((few - one) * (few + one))));
    const T inside = select(large, y + splat<T>(0.6931471805599453), y);
    return select(outside, elementary::quiet_nan<T>(), inside);
  }
}

}  // namespace kiln

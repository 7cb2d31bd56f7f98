#pragma once
#include "kiln/core/math/root.hpp"

namespace kiln {

namespace elementary {

/// x = 2^e (1 + f) with 1 + f in [sqrt 1/2, sqrt 2), for x > 0, denormals included.
template <class T> struct logarithm_parts { T e, f; };

template <class T> KILN_FN constexpr logarithm_parts<T> split_logarithm(T x) {
  using U = element_t<bits_t<T>>;
  constexpr U root_half = bits(element_t<T>(0.7071067811865476)), one = bits(element_t<T>(1));
  constexpr element_t<T> lift = is_f32<T> ? 0x1p24 : 0x1p54;
  const auto tiny = x < splat<T>(from_bits<element_t<T>>(U(1) << mantissa_bits<T>));
  const auto u = bits(x * select(tiny, splat<T>(lift), splat<T>(1))) + (one - root_half);
  const T biased = from_bits<T>((u >> mantissa_bits<T>)+bits(shifter<T>)) - splat<T>(shifter<T> + exponent_bias<T>);
  const T lifted = splat<T>(is_f32<T> ? 24 : 54);
  return {select(tiny, biased - lifted, biased), from_bits<T>((u & mantissa_mask<T>)+root_half) - splat<T>(1)};
}

/// ln(1 + f) as f + low, for f of split_logarithm.
template <class T> KILN_FN constexpr T logarithm_tail(T f) {
  if constexpr (is_f32<T>) {
    const T p = polynomial(f, 0.333333167388859114, -0.250008103580766218, 0.200022853582742832, -0.166245549848059335,
                           0.141812116234562019, -0.131287661512455595, 0.128815223280231235, -0.0785942841614302);
    const T square = f * f;
    return mad(splat<T>(-0.5), square, f * square * p);
  } else {
    // ln(1 + f) = 2 atanh(s), s = f / (2 + f); 2 s = f - s f
    const T s = f / (splat<T>(2) + f), z = s * s;
    const T p = polynomial(z, 0.666666666666673441, 0.399999999994146714, 0.285714287423889204, 0.222221985730868667,
                           0.181835643293574975, 0.153140505119140346, 0.147959497303823365);
    const T half_square = splat<T>(0.5) * f * f;
    return s * mad(z, p, half_square) - half_square;
  }
}

/// `y` where x is positive and finite, else the logarithm's special values.
template <class T> KILN_FN constexpr T logarithm_specials(T x, T y) {
  const T finite = select(x < infinity<T>(), y, x);
  return select(x > splat<T>(0), finite,
                select(x == splat<T>(0), -infinity<T>(), select(x < splat<T>(0), quiet_nan<T>(), x)));
}

/// e ln 2 + (f + tail + extra).
template <class T> KILN_FN constexpr T join_logarithm(T e, T f, T tail) {
  const T low = mad(e, splat<T>(is_f32<T> ? 1.42860682030941723212e-6 : 1.90821492927058770002e-10), tail);
  return mad(e, splat<T>(is_f32<T> ? 0.693145751953125 : 6.93147180369123816490e-01), f + low);
}

}  // namespace elementary

/// Natural logarithm: error below 1 ulp; -infinity at 0, NaN below.
template <class T> KILN_FN constexpr T log(T x) {
  if constexpr (recorder<T>)
    return T::call("log", x);
  else if constexpr (narrow_float<T>)
    return T(log(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "log needs a floating type: convert integers first");
    using namespace elementary;
    if constexpr (!is_vec<T>)
      if (__builtin_is_constant_evaluated() && !(x >= T(0))) return quiet_nan<T>();
    const auto [e, f] = split_logarithm(x);
    return logarithm_specials(x, join_logarithm(e, f, logarithm_tail(f)));
  }
}

/// ln(1 + x): error below 1.1 ulp, also near zero; -infinity at -1, NaN below.
template <class T> KILN_FN constexpr T log1p(T x) {
  if constexpr (recorder<T>)
    return T::call("log1p", x);
  else if constexpr (narrow_float<T>)
    return T(log1p(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "log1p needs a floating type: convert integers first");
    using namespace elementary;
    if constexpr (!is_vec<T>)
      if (__builtin_is_constant_evaluated() && !(x > T(-1) && x < infinity<T>())) return log(x < T(0) ? x + T(1) : x);
    const T one = splat<T>(1), u = x + one;
    const auto [e, f] = split_logarithm(u);
    const T lost = select(x > one, one - (u - x), x - (u - one));  // u + lost == 1 + x
    const T y = logarithm_specials(u, join_logarithm(e, f, logarithm_tail(f) + lost / u));
    return select(u == one, x, y);
  }
}

/// Base-2 logarithm: error below 2 ulp, exact for powers of two; -infinity at 0, NaN below.
template <class T> KILN_FN constexpr T log2(T x) {
  if constexpr (recorder<T>)
    return T::call("log2", x);
  else if constexpr (narrow_float<T>)
    return T(log2(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "log2 needs a floating type: convert integers first");
    using namespace elementary;
    if constexpr (!is_vec<T>)
      if (__builtin_is_constant_evaluated() && !(x >= T(0))) return quiet_nan<T>();
    const auto [e, f] = split_logarithm(x);
    const T l = f + logarithm_tail(f);
    const T low = is_f32<T> ? splat<T>(1.9259629911266175e-8) : splat<T>(2.0355273740931033e-17);
    return logarithm_specials(x, mad(l, splat<T>(1.4426950408889634), mad(l, low, e)));
  }
}

/// Base-10 logarithm: error below 2 ulp; -infinity at 0, NaN below.
template <class T> KILN_FN constexpr T log10(T x) {
  if constexpr (recorder<T>)
    return T::call("log10", x);
  else if constexpr (narrow_float<T>)
    return T(log10(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "log10 needs a floating type: convert integers first");
    using namespace elementary;
    if constexpr (!is_vec<T>)
      if (__builtin_is_constant_evaluated() && !(x >= T(0))) return quiet_nan<T>();
    const auto [e, f] = split_logarithm(x);
    const T l = f + logarithm_tail(f);
    // log10 2 in two parts, the upper short enough for an exact product with e
    const T upper = splat<T>(is_f32<T> ? 0.301025390625 : 0.30102999554947018623);
    const T lower = splat<T>(is_f32<T> ? 4.6050389811952137e-6 : 1.14511008980218386912e-10);
    return logarithm_specials(x, mad(e, upper, mad(l, splat<T>(0.4342944819032518), e * lower)));
  }
}

}  // namespace kiln

#pragma once
#include "kiln/core/math/payne_hanek.hpp"

namespace kiln {

namespace elementary {

/// x as quarter turns and a rest.
template <class T> KILN_FN constexpr quarter_turns<T> reduce_by_quarter_turns(T x) {
  using U = element_t<bits_t<T>>;
  if constexpr (!is_vec<T>)
    if (__builtin_is_constant_evaluated() && !(abs(x) <= T(cody_waite_limit<T>))) return reduce_huge(x);
  const T t = mad(x, splat<T>(0.6366197723675814), splat<T>(shifter<T>)), n = t - splat<T>(shifter<T>);
  quarter_turns<T> out{x, bits(t)};
  const auto subtract = [&](double part) { out.r = mad(n, splat<T>(-part), out.r); };
  // Parts of pi/2 with few enough bits that their products with n are exact (or exactly fused).
  if constexpr (!is_f32<T>) {
    subtract(1.57079632673412561417), subtract(6.077100506303965976595549e-11), subtract(2.0222662487959507324e-21);
  } else if constexpr (has_fma) {
    subtract(1.5707962512969970703125), subtract(7.54978941586159635335207e-8), subtract(5.390302858158119052895e-15);
  } else {
    subtract(1.5703125), subtract(0.0004837512969970703125), subtract(7.549533620476722717285156e-8);
    subtract(2.563282919254561420530081e-12), subtract(6.12323399573676588613e-17);
  }
  if (any(abs(x) > splat<T>(cody_waite_limit<T>))) {  // rare: a branch on the whole vector costs nothing that matters
    if constexpr (is_vec<T>) {
      struct arrays {
        element_t<T> x[lanes<T>], r[lanes<T>];
        U q[lanes<T>];
      };
      struct vectors {
        T x, r;
        bits_t<T> q;
      };
      auto lane = __builtin_bit_cast(arrays, (vectors{x, out.r, out.q}));
      reduce_huge_lanes(lane.x, lane.r, lane.q, lanes<T>);
      const auto done = __builtin_bit_cast(vectors, lane);
      out = {done.r, done.q};
    } else {
      out = reduce_huge(x);
    }
  }
  return out;
}

/// sin r for |r| <= pi/4; keeps the sign of zero.
template <class T> KILN_FN constexpr T sine_polynomial(T r) {
  const T z = r * r;
  if constexpr (is_f32<T>)
    return copysign(mad(r * z,
                        polynomial(z, -0.166666666415264167, 0.0083333293740698245, -0.00019839330981951469,
                                   2.71827435570224239e-6),
                        r),
                    r);
  else
    return copysign(mad(r * z,
                        polynomial(z, -0.166666666666666666, 0.00833333333333332276, -0.000198412698412550629,
                                   2.75573192141879364e-6, -2.50521049109249003e-8, 1.60583665412997892e-10,
                                   -7.57869351211248226e-13),
                        r),
                    r);
}

/// cos r for |r| <= pi/4.
template <class T> KILN_FN constexpr T cosine_polynomial(T r) {
  const T z = r * r, half_square = splat<T>(0.5) * z, head = splat<T>(1) - half_square;
  T p{};
  if constexpr (is_f32<T>)
    p = polynomial(z, 0.0416666666226531476, -0.0013888883738058357, 0.0000247995158949452638, -2.72098932909346363e-7);
  else
    p = polynomial(z, 0.0416666666666666666, -0.00138888888888888741, 0.0000248015873015714606, -2.75573192153602107e-7,
                   2.08767543625396779e-9, -1.14702928446201836e-11, 4.7380895436619971e-14);
  return head + mad(z * z, p, (splat<T>(1) - head) - half_square);  // what rounding `head` lost comes back
}

/// sin of (q pi/2 + r).
template <class T> KILN_FN constexpr T sine_of_turns(T r, bits_t<T> q) {
  using U = element_t<bits_t<T>>;
  const T y = select((q & U(1)) != U(0), cosine_polynomial(r), sine_polynomial(r));
  return from_bits<T>(bits(y) ^ ((q & U(2)) << (sizeof(U) * 8 - 2)));
}

}  // namespace elementary

/// Sine of radians: error below 2.5 ulp for every finite argument.
template <class T> KILN_FN constexpr T sin(T x) {
  if constexpr (recorder<T>)
    return T::call("sin", x);
  else if constexpr (narrow_float<T>)
    return T(sin(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "sin needs a floating type: convert integers first");
    if constexpr (!is_vec<T>)
      if (__builtin_is_constant_evaluated() && !(abs(x) < elementary::infinity<T>())) return elementary::quiet_nan<T>();
    const auto [r, q] = elementary::reduce_by_quarter_turns(x);
    return elementary::sine_of_turns(r, q);
  }
}

/// Cosine of radians: error below 2.5 ulp for every finite argument.
template <class T> KILN_FN constexpr T cos(T x) {
  if constexpr (recorder<T>)
    return T::call("cos", x);
  else if constexpr (narrow_float<T>)
    return T(cos(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "cos needs a floating type: convert integers first");
    if constexpr (!is_vec<T>)
      if (__builtin_is_constant_evaluated() && !(abs(x) < elementary::infinity<T>())) return elementary::quiet_nan<T>();
    const auto [r, q] = elementary::reduce_by_quarter_turns(x);
    return elementary::sine_of_turns(r, bits_t<T>(q + element_t<bits_t<T>>(1)));
  }
}

/// Tangent of radians: error below 4 ulp for every finite argument.
template <class T> KILN_FN constexpr T tan(T x) {
  if constexpr (recorder<T>)
    return T::call("tan", x);
  else if constexpr (narrow_float<T>)
    return T(tan(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "tan needs a floating type: convert integers first");
    if constexpr (!is_vec<T>)
      if (__builtin_is_constant_evaluated() && !(abs(x) < elementary::infinity<T>())) return elementary::quiet_nan<T>();
    using U = element_t<bits_t<T>>;
    const auto [r, q] = elementary::reduce_by_quarter_turns(x);
    const T s = elementary::sine_polynomial(r), c = elementary::cosine_polynomial(r);
    const auto odd = (q & U(1)) != U(0);
    return select(odd, -c, s) / select(odd, s, c);
  }
}

}  // namespace kiln

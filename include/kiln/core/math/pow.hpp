#pragma once
#include "kiln/core/math/exp.hpp"
#include "kiln/core/math/log.hpp"

namespace kiln {

namespace elementary {

/// log2 of a positive finite `a` in two parts, to about 1.5 times T's precision.
template <class T> KILN_FN constexpr two_parts<T> log2_in_two_parts(T a) {
  const auto [e, f] = split_logarithm(a);
  // s = f / (2 + f) in two parts; ln(1 + f) = 2 s + 2/3 s^3 + s^5 p(s^2)
  const auto below = two_sum(splat<T>(2), f);
  const T s = f / below.high;
  const auto back = two_product(s, below.high);
  const T s_low = (((f - back.high) - back.low) - s * below.low) / below.high;
  auto square = two_product(s, s);
  square.low += (s + s) * s_low;
  auto cube = two_product(square.high, s);
  cube.low += square.low * s + square.high * s_low;
  const T two_thirds = splat<T>(0.6666666666666666);
  auto third = two_product(cube.high, two_thirds);
  third.low += cube.low * two_thirds + cube.high * splat<T>(is_f32<T> ? -1.9868215e-8 : 3.7007434154171886e-17);
  T p{};
  if constexpr (is_f32<T>)
    p = polynomial(square.high, 0.4000015217641072, 0.285471336689202881, 0.234185753320303888);
  else
    p = polynomial(square.high, 0.400000000000022552, 0.285714285701000529, 0.222222225198260151, 0.181817843764781569,
                   0.153867568646578368, 0.132568293498642793, 0.131962148462072426);
  const auto ln = two_sum(s + s, third.high);
  const T ln_low = ln.low + (s_low + s_low) + third.low + cube.high * square.high * p;
  const T log2_e = splat<T>(1.4426950408889634);
  const auto scaled = two_product(ln.high, log2_e);
  const T scaled_low =
      scaled.low + ln_low * log2_e + ln.high * splat<T>(is_f32<T> ? 1.9259629911266175e-8 : 2.0355273740931033e-17);
  const auto sum = two_sum(e, scaled.high);
  return two_sum(sum.high, sum.low + scaled_low);
}

/// x to the power of an integer by squaring, modulo 2^bits; negative powers truncate towards zero.
template <class T> KILN_FN constexpr T integer_power(T x, T y) {
  using E = element_t<T>;
  using U = rebind_t<T, decltype(bits_t<E>(0) + 0u)>;  // no promotion to int on the way
  U base = convert<U>(x), result = splat<U>(1), left = convert<U>(y);
  for (int bit = 0; bit < int(sizeof(E) * 8); ++bit) {
    result = select((left & splat<U>(1)) != splat<U>(0), result * base, result);
    base = base * base;
    left = left >> 1;
  }
  const T power = convert<T>(result), zero = splat<T>(0), one = splat<T>(1);
  if constexpr (E(-1) > E(0)) {
    return power;
  } else {
    const T odd = y & one, minus = splat<T>(-1);
    const T unit = select(x == one, one, select(x == minus, select(odd == one, minus, one), zero));
    return select(y < zero, unit, power);
  }
}

}  // namespace elementary

/// x to the power y, with C's special values; error below 1.5 ulp, double below 2 ulp. Integers: modulo 2^bits,
/// negative powers truncated towards zero.
template <class T> KILN_FN constexpr T pow(T x, T y) {
  if constexpr (recorder<T>)
    return T::call("pow", x, y);
  else if constexpr (narrow_float<T>)
    return T(pow(static_cast<float>(x), static_cast<float>(y)));
  else if constexpr (integral<T>)
    return elementary::integer_power(x, y);
  else {
    using namespace elementary;
    const T a = abs(x), inf = infinity<T>(), zero = splat<T>(0), one = splat<T>(1), half = splat<T>(0.5);
    if (constant_nan(x)) return y == zero ? one : x;
    if (constant_nan(y)) return x == one ? one : y;
    const auto l = log2_in_two_parts(a);
    // A greater |y| changes nothing, and its product could overflow.
    const T slope = is_f32<T> ? within(y, -0x1p40, 0x1p40) : within(y, -0x1p70, 0x1p70);
    const auto exponent = two_product(slope, l.high);
    const T near = is_f32<T> ? within(exponent.high, -160.0, 130.0) : within(exponent.high, -1080.0, 1030.0);
    const T rest = select(near == exponent.high, exponent.low + slope * l.low, zero);
    const auto vanishes = logical_xor(a == zero, y < zero);
    const T at_ends = select(logical_or(a == zero, a == inf), select(vanishes, zero, inf), exp2_of_parts(near, rest));
    const T magnitude = select(a == one, one, at_ends);
    const auto integer = trunc(y) == y;
    const auto odd = logical_and(integer, trunc(y * half) != y * half);
    const T signed_result = select(odd, copysign(magnitude, x), magnitude);
    const auto undefined = logical_and(logical_and(x < zero, a < inf), logical_not(integer));
    const T number = select(logical_or(undefined, y != y), quiet_nan<T>(), signed_result);
    return select(logical_or(y == zero, x == one), one, select(x == x, number, x));
  }
}

}  // namespace kiln

#pragma once

#include <algorithm>
#include <limits>

#include "kiln/core/math.hpp"
#include "kiln/kernel/pool/problem.hpp"

namespace kiln::kernels {

/// How a pooling combines elements, `as_is` if nothing is made of each first: a mean is a sum in single precision,
/// divided by `pool_divisor`.
template <bool Average> struct pooling_fold {
  static constexpr bool mean = Average, as_is = true;
  static constexpr float neutral = Average ? 0.0F : -std::numeric_limits<float>::infinity();

  template <class T> KILN_FN static T combine(T a, T b) {
    if constexpr (Average)
      return a + b;
    else
      return max(a, b);
  }
  /// What is combined of an element, and what is made of the sum.
  template <class T> KILN_FN static T prepared(T x, const pooling_problem&) { return x; }
  template <class T> KILN_FN static T finished(T sum, const pooling_problem&) { return sum; }
};

/// How a pooling by the norm of order p combines elements: (sum of |x|^p)^(1 / p), in single precision.
struct norm_fold {
  static constexpr bool mean = false, as_is = false;
  static constexpr float neutral = 0;

  template <class T> KILN_FN static T combine(T a, T b) { return a + b; }
  template <class T> KILN_FN static T prepared(T x, const pooling_problem& p) {
    const T magnitude = abs(x);
    T power = magnitude;
    for (std::int64_t i = 1; i < p.norm; ++i) power = power * magnitude;
    return power;
  }
  template <class T> KILN_FN static T finished(T sum, const pooling_problem& p) {
    if (p.norm == 1) return sum;
    if (p.norm == 2) return sqrt(sum);
    return pow(sum, all_of<T>(1.0F / static_cast<float>(p.norm)));
  }

 private:
  template <class T> KILN_FN static T all_of(float x) {
    if constexpr (is_vec<T>)
      return broadcast<T>(x);
    else
      return x;
  }
};

/// The divisor of a mean: the number of elements that it counts, 1 where there are none. Products with reciprocals,
/// whose means of ones are not 1, gained nothing: the division overlaps with the combination of the next window.
inline float pool_divisor(std::int64_t counted) { return static_cast<float>(std::max<std::int64_t>(counted, 1)); }

}  // namespace kiln::kernels

#pragma once

#include <algorithm>
#include <limits>

#include "kiln/core/math.hpp"
#include "kiln/kernel/pool/problem.hpp"

namespace kiln::kernels {

/// How a pooling combines elements: a mean is a sum in single precision, divided by `pool_divisor`.
template <bool Average> struct pooling_fold {
  static constexpr float neutral = Average ? 0.0F : -std::numeric_limits<float>::infinity();

  template <class T> KILN_FN static T combine(T a, T b) {
    if constexpr (Average)
      return a + b;
    else
      return max(a, b);
  }
};

/// The divisor of a mean: the number of elements that it counts, 1 where there are none. Products with reciprocals,
/// whose means of ones are not 1, gained nothing: the division overlaps with the combination of the next window.
inline float pool_divisor(std::int64_t counted) { return static_cast<float>(std::max<std::int64_t>(counted, 1)); }

}  // namespace kiln::kernels

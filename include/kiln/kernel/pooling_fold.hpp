#pragma once

#include <limits>

#include "kiln/core/math.hpp"
#include "kiln/kernel/pooling_problem.hpp"

namespace kiln::kernels {

/// How a pooling combines elements: a mean is a sum in single precision times `pool_factor`.
template <bool Average>
struct pooling_fold {
  static constexpr float neutral = Average ? 0.0F : -std::numeric_limits<float>::infinity();

  template <class T>
  KILN_FN static T combine(T a, T b) {
    if constexpr (Average)
      return a + b;
    else
      return max(a, b);
  }
};

/// What makes a mean of the sum of `counted` elements: a vector's product takes an eighth of its quotient's time and
/// adds half a unit in the last place to the error. A mean of nothing is 0.
inline float pool_factor(std::int64_t counted) { return counted == 0 ? 0.0F : 1 / static_cast<float>(counted); }

}  // namespace kiln::kernels

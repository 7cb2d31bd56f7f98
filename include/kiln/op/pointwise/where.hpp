#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// x where the condition (bool) holds, y elsewhere.
struct where {
  static constexpr auto types = dtypes::convertible | dtypes::dims;
  static constexpr int condition_args = 1;
  template <class C, class T> constexpr T operator()(C condition, T x, T y) const {
    return kiln::select(condition, x, y);
  }
};

}  // namespace kiln::op

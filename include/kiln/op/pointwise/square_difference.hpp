#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// (x - y)^2; integers wrap.
struct square_difference {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  static constexpr bool commutative = true;
  template <class T> constexpr T operator()(T x, T y) const {
    const T d = detail::wrapping_sub(x, y);
    return detail::wrapping_mul(d, d);
  }
};

}  // namespace kiln::op

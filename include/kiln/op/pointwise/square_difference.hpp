#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// (x - y)^2; integers wrap.
struct square_difference {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  static constexpr bool commutative = true;
  template <class T> constexpr T operator()(T x, T y) const { return detail::squared(detail::wrapping_sub(x, y)); }
};

}  // namespace kiln::op

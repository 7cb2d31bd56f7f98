#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Product of two elements; integers wrap (ONNX Mul).
struct mul {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  static constexpr bool commutative = true;
  template <class T> constexpr T operator()(T x, T y) const { return detail::wrapping_mul(x, y); }
};

}  // namespace kiln::op

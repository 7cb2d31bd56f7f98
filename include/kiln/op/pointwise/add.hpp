#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Sum of two elements; integers wrap (ONNX Add).
struct add {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  static constexpr bool commutative = true;
  template <class T> constexpr T operator()(T x, T y) const { return detail::wrapping_add(x, y); }
};

}  // namespace kiln::op

#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Quotient of two elements (ONNX Div): integers truncate toward zero and give 0 for a divisor of 0; symbolic
/// dimensions, which are not negative, round down.
struct div {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  template <class T> constexpr T operator()(T x, T y) const { return detail::quotient(x, y); }
};

}  // namespace kiln::op

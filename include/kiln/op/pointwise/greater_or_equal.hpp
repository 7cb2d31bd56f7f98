#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Whether x is at least y; false beside NaN (ONNX GreaterOrEqual).
struct greater_or_equal {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  template <class T> constexpr auto operator()(T x, T y) const { return detail::not_above(y, x); }
};

}  // namespace kiln::op

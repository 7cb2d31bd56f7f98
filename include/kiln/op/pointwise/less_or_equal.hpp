#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Whether x is at most y; false beside NaN (ONNX LessOrEqual).
struct less_or_equal {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  template <class T> constexpr auto operator()(T x, T y) const { return detail::not_above(x, y); }
};

}  // namespace kiln::op

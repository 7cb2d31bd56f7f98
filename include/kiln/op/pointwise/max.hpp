#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// The greater of two elements; NaN if either is NaN (ONNX Max).
struct max {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  static constexpr bool commutative = true;
  template <class T> constexpr T operator()(T x, T y) const { return kiln::max(x, y); }
};

}  // namespace kiln::op

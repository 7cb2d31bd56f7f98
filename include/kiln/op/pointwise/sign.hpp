#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// -1, 0 or 1 by the sign of x; NaN stays (ONNX Sign).
struct sign {
  static constexpr auto types = dtypes::numbers;
  template <class T> constexpr T operator()(T x) const { return kiln::sign(x); }
};

}  // namespace kiln::op

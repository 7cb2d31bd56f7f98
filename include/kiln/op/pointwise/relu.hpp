#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// The greater of x and 0; NaN stays (ONNX Relu).
struct relu {
  static constexpr auto types = dtypes::numbers;
  template <class T> constexpr T operator()(T x) const { return kiln::max(x, splat<T>(0)); }
};

}  // namespace kiln::op

#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Magnitude of an element; the least signed integer wraps to itself (ONNX Abs).
struct abs {
  static constexpr auto types = dtypes::numbers;
  template <class T> constexpr T operator()(T x) const { return kiln::abs(x); }
};

}  // namespace kiln::op

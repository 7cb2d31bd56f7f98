#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Sine of radians (ONNX Sin).
struct sin {
  template <class T> constexpr T operator()(T x) const { return kiln::sin(x); }
};

}  // namespace kiln::op

#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Tangent of radians (ONNX Tan).
struct tan {
  template <class T> constexpr T operator()(T x) const { return kiln::tan(x); }
};

}  // namespace kiln::op

#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Inverse tangent in radians (ONNX Atan).
struct atan {
  template <class T> constexpr T operator()(T x) const { return kiln::atan(x); }
};

}  // namespace kiln::op

#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Hyperbolic tangent (ONNX Tanh).
struct tanh {
  template <class T> constexpr T operator()(T x) const { return kiln::tanh(x); }
};

}  // namespace kiln::op

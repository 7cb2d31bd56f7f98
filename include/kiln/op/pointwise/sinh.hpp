#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Hyperbolic sine (ONNX Sinh).
struct sinh {
  template <class T> constexpr T operator()(T x) const { return kiln::sinh(x); }
};

}  // namespace kiln::op

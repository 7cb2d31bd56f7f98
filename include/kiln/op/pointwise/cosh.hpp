#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Hyperbolic cosine (ONNX Cosh).
struct cosh {
  template <class T> constexpr T operator()(T x) const { return kiln::cosh(x); }
};

}  // namespace kiln::op

#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Inverse hyperbolic sine (ONNX Asinh).
struct asinh {
  template <class T> constexpr T operator()(T x) const { return kiln::asinh(x); }
};

}  // namespace kiln::op

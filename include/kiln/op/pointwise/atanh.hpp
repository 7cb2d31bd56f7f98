#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Inverse hyperbolic tangent (ONNX Atanh).
struct atanh {
  template <class T> constexpr T operator()(T x) const { return kiln::atanh(x); }
};

}  // namespace kiln::op

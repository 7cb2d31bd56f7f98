#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Cosine of radians (ONNX Cos).
struct cos {
  template <class T> constexpr T operator()(T x) const { return kiln::cos(x); }
};

}  // namespace kiln::op

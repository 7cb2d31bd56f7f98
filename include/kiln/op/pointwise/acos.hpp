#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Inverse cosine in radians (ONNX Acos).
struct acos {
  template <class T> constexpr T operator()(T x) const { return kiln::acos(x); }
};

}  // namespace kiln::op

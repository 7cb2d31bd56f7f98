#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Inverse hyperbolic cosine (ONNX Acosh).
struct acosh {
  template <class T> constexpr T operator()(T x) const { return kiln::acosh(x); }
};

}  // namespace kiln::op

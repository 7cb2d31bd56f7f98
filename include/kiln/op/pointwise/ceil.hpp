#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Least integer not below x (ONNX Ceil).
struct ceil {
  template <class T> constexpr T operator()(T x) const { return kiln::ceil(x); }
};

}  // namespace kiln::op

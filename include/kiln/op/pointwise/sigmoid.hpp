#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// 1 / (1 + e^-x) (ONNX Sigmoid).
struct sigmoid {
  template <class T> constexpr T operator()(T x) const { return kiln::sigmoid(x); }
};

}  // namespace kiln::op

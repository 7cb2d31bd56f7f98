#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// e^x (ONNX Exp).
struct exp {
  template <class T> constexpr T operator()(T x) const { return kiln::exp(x); }
};

}  // namespace kiln::op

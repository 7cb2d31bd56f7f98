#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Natural logarithm: -infinity at 0, NaN below (ONNX Log).
struct log {
  template <class T> constexpr T operator()(T x) const { return kiln::log(x); }
};

}  // namespace kiln::op

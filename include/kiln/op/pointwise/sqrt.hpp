#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Square root, NaN below zero (ONNX Sqrt).
struct sqrt {
  template <class T> constexpr T operator()(T x) const { return kiln::sqrt(x); }
};

}  // namespace kiln::op

#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// 1 / x (ONNX Reciprocal).
struct recip {
  template <class T> constexpr T operator()(T x) const { return kiln::recip(x); }
};

}  // namespace kiln::op

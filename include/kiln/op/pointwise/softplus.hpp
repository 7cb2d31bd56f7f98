#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// ln(1 + e^x) (ONNX Softplus).
struct softplus {
  template <class T> constexpr T operator()(T x) const {
    return kiln::max(x, splat<T>(0)) + kiln::log1p(kiln::exp(-kiln::abs(x)));
  }
};

}  // namespace kiln::op

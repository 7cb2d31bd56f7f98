#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// alpha x + beta kept within [0, 1] (ONNX HardSigmoid).
struct hard_sigmoid {
  float alpha = 0.2f;
  float beta = 0.5f;
  template <class T> constexpr T operator()(T x) const {
    return kiln::min(kiln::max(splat<T>(alpha) * x + splat<T>(beta), splat<T>(0)), splat<T>(1));
  }
};

}  // namespace kiln::op

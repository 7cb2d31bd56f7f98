#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// x times the normal distribution function of x, or its tanh approximation (ONNX Gelu).
struct gelu {
  bool tanh_approximation = false;
  template <class T> constexpr T operator()(T x) const {
    const T half = splat<T>(0.5) * x;
    if (tanh_approximation) {
      const T cubic = x + splat<T>(0.044715) * x * x * x;
      return half * (splat<T>(1) + kiln::tanh(splat<T>(0.7978845608028654) * cubic));
    }
    return half * (splat<T>(1) + kiln::erf(splat<T>(0.7071067811865476) * x));
  }
};

}  // namespace kiln::op

#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// x - bias above lambd, x + bias below -lambd, 0 between (ONNX Shrink).
struct shrink {
  float lambd = 0.5f;
  float bias = 0;
  template <class T> constexpr T operator()(T x) const {
    const T limit = splat<T>(lambd), shift = splat<T>(bias);
    return kiln::select(x > limit, x - shift, kiln::select(x < -limit, x + shift, splat<T>(0)));
  }
};

}  // namespace kiln::op

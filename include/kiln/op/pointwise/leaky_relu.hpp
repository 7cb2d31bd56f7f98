#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// x where positive, alpha * x elsewhere (ONNX LeakyRelu).
struct leaky_relu {
  float alpha = 0.01f;
  template <class T> constexpr T operator()(T x) const { return kiln::select(x > splat<T>(0), x, splat<T>(alpha) * x); }
};

}  // namespace kiln::op

#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// x where above alpha, 0 elsewhere (ONNX ThresholdedRelu).
struct thresholded_relu {
  float alpha = 1;
  template <class T> constexpr T operator()(T x) const { return kiln::select(x > splat<T>(alpha), x, splat<T>(0)); }
};

}  // namespace kiln::op

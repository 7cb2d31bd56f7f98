#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// x times (x / 6 + 1 / 2 kept within [0, 1]) (ONNX HardSwish).
struct hard_swish {
  template <class T> constexpr T operator()(T x) const {
    const T gate = x * splat<T>(1.0 / 6) + splat<T>(0.5);
    return x * kiln::min(kiln::max(gate, splat<T>(0)), splat<T>(1));
  }
};

}  // namespace kiln::op

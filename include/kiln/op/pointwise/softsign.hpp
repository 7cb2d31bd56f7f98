#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// x / (1 + |x|) (ONNX Softsign).
struct softsign {
  template <class T> constexpr T operator()(T x) const { return x / (splat<T>(1) + kiln::abs(x)); }
};

}  // namespace kiln::op

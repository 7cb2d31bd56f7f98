#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// x kept within [low, high], high where they cross; NaN stays (ONNX Clip).
struct clip {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  template <class T> constexpr T operator()(T x, T low, T high) const { return kiln::min(kiln::max(x, low), high); }
};

}  // namespace kiln::op

#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Sum along the axes (none: all of them); reduced extents become 1 (ONNX ReduceSum).
struct reduce_sum {
  ints axes{};
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  static constexpr detail::wrapping_sum combine{};
};

}  // namespace kiln::op

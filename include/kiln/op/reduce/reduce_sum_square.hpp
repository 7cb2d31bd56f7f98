#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Sum of squares along the axes (none: all of them); reduced extents become 1 (ONNX ReduceSumSquare).
struct reduce_sum_square {
  ints axes{};
  static constexpr auto types = dtypes::numbers;
  static constexpr detail::wrapping_sum combine{};
  template <class T> constexpr T prepare(T x) const { return detail::squared(x); }
};

}  // namespace kiln::op

#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Sum of magnitudes along the axes (none: all of them); reduced extents become 1 (ONNX ReduceL1).
struct reduce_l1 {
  ints axes{};
  static constexpr auto types = dtypes::numbers;
  static constexpr detail::wrapping_sum combine{};
  template <class T> constexpr T prepare(T x) const { return kiln::abs(x); }
};

}  // namespace kiln::op

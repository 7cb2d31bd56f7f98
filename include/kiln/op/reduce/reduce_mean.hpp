#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Arithmetic mean along the axes (none: all of them); reduced extents become 1; integers truncate toward zero
/// (ONNX ReduceMean).
struct reduce_mean {
  ints axes{};
  static constexpr auto types = dtypes::numbers;
  static constexpr detail::wrapping_sum combine{};
  template <class T> constexpr T finish(T acc, T count) const { return detail::quotient(acc, count); }
};

}  // namespace kiln::op

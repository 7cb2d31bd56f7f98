#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Square root of the sum of squares along the axes (none: all of them); reduced extents become 1 (ONNX ReduceL2).
struct reduce_l2 {
  ints axes{};
  static constexpr auto types = dtypes::numbers;
  static constexpr detail::wrapping_sum combine{};
  template <class T> constexpr T prepare(T x) const { return detail::squared(x); }
  template <class T> constexpr T finish(T acc, T) const {
    if constexpr (integral<T>)
      return kiln::convert<T>(kiln::sqrt(kiln::convert<rebind_t<T, double>>(acc)));
    else
      return kiln::sqrt(acc);
  }
};

}  // namespace kiln::op

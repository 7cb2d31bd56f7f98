#pragma once
#include "kiln/op/arithmetic.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Sum of squares along the axes (none: all of them); reduced extents become 1 (ONNX ReduceSumSquare).
struct reduce_sum_square {
  ints axes{};
  static constexpr auto types = dtypes::numbers;
  template <class T>
  constexpr T identity() const {
    return splat<T>(0);
  }
  template <class T>
  constexpr T prepare(T x) const {
    return detail::wrapping_mul(x, x);
  }
  template <class T>
  constexpr T combine(T acc, T x) const {
    return detail::wrapping_add(acc, x);
  }
};

}  // namespace kiln::op

#pragma once
#include "kiln/op/arithmetic.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Sum along the axes (none: all of them); reduced extents become 1 (ONNX ReduceSum).
struct reduce_sum {
  ints axes{};
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  template <class T>
  constexpr T identity() const {
    return splat<T>(0);
  }
  template <class T>
  constexpr T combine(T acc, T x) const {
    return detail::wrapping_add(acc, x);
  }
};

}  // namespace kiln::op

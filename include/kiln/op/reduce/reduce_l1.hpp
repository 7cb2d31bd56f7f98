#pragma once
#include "kiln/op/arithmetic.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Sum of magnitudes along the axes (none: all of them); reduced extents become 1 (ONNX ReduceL1).
struct reduce_l1 {
  ints axes{};
  static constexpr auto types = dtypes::numbers;
  template <class T>
  constexpr T identity() const {
    return splat<T>(0);
  }
  template <class T>
  constexpr T prepare(T x) const {
    return kiln::abs(x);
  }
  template <class T>
  constexpr T combine(T acc, T x) const {
    return detail::wrapping_add(acc, x);
  }
};

}  // namespace kiln::op

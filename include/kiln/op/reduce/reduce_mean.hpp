#pragma once
#include "kiln/op/arithmetic.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Arithmetic mean along the axes (none: all of them); reduced extents become 1; integers truncate toward zero
/// (ONNX ReduceMean).
struct reduce_mean {
  ints axes{};
  static constexpr auto types = dtypes::numbers;
  template <class T>
  constexpr T identity() const {
    return splat<T>(0);
  }
  template <class T>
  constexpr T combine(T acc, T x) const {
    return detail::wrapping_add(acc, x);
  }
  template <class T>
  constexpr T finish(T acc, T count) const {
    return detail::quotient(acc, count);
  }
};

}  // namespace kiln::op

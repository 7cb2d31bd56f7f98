#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Least element along the axes (none: all of them); reduced extents become 1; NaN if any is NaN,
/// infinity or the greatest value over nothing (ONNX ReduceMin).
struct reduce_min {
  ints axes{};
  static constexpr auto types = dtypes::all;
  template <class T> constexpr T identity() const { return detail::highest_of<T>(); }
  template <class T> constexpr T combine(T acc, T x) const { return kiln::min(acc, x); }
};

}  // namespace kiln::op

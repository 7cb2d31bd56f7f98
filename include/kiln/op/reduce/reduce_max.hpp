#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Greatest element along the axes (none: all of them); reduced extents become 1; NaN if any is NaN,
/// -infinity or the least value over nothing (ONNX ReduceMax).
struct reduce_max {
  ints axes{};
  static constexpr auto types = dtypes::all;
  template <class T> constexpr T identity() const { return detail::lowest_of<T>(); }
  template <class T> constexpr T combine(T acc, T x) const { return kiln::max(acc, x); }
};

}  // namespace kiln::op

#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Product along the axes (none: all of them); reduced extents become 1 (ONNX ReduceProd).
struct reduce_prod {
  ints axes{};
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  template <class T> constexpr T identity() const { return splat<T>(1); }
  template <class T> constexpr T combine(T acc, T x) const { return detail::wrapping_mul(acc, x); }
};

}  // namespace kiln::op

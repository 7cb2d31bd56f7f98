#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Whether two elements are equal; NaN equals nothing (ONNX Equal).
struct equal {
  static constexpr auto types = dtypes::all | dtypes::dims;
  static constexpr bool commutative = true;
  template <class T> constexpr auto operator()(T x, T y) const {
    if constexpr (std::is_same_v<T, dimension>)
      return detail::decided(same(x, y));
    else
      return x == y;
  }
};

}  // namespace kiln::op

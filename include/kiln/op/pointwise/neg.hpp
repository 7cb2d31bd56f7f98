#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// -x; integers wrap (ONNX Neg).
struct neg {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  template <class T> constexpr T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return detail::wrapping_sub(splat<T>(0), x);
    else
      return -x;
  }
};

}  // namespace kiln::op

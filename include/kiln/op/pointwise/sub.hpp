#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Difference of two elements; integers wrap (ONNX Sub).
struct sub {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  template <class T> constexpr T operator()(T x, T y) const { return detail::wrapping_sub(x, y); }
};

}  // namespace kiln::op

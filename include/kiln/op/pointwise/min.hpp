#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// The lesser of two elements; NaN if either is NaN (ONNX Min).
struct min {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  static constexpr bool commutative = true;
  template <class T> constexpr T operator()(T x, T y) const { return kiln::min(x, y); }
};

}  // namespace kiln::op

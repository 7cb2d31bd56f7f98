#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Whether both of two bools hold (ONNX And).
struct logical_and {
  static constexpr auto types = dtypes::boolean;
  static constexpr bool commutative = true;
  template <class T> constexpr T operator()(T x, T y) const { return kiln::logical_and(x, y); }
};

}  // namespace kiln::op

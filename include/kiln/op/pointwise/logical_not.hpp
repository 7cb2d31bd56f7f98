#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Whether a bool does not hold (ONNX Not).
struct logical_not {
  static constexpr auto types = dtypes::boolean;
  template <class T> constexpr T operator()(T x) const { return kiln::logical_not(x); }
};

}  // namespace kiln::op

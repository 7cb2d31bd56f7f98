#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Whether either of two bools holds (ONNX Or).
struct logical_or {
  static constexpr auto types = dtypes::boolean;
  static constexpr bool commutative = true;
  template <class T> constexpr T operator()(T x, T y) const { return kiln::logical_or(x, y); }
};

}  // namespace kiln::op

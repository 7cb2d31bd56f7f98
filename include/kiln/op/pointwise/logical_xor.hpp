#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Whether exactly one of two bools holds (ONNX Xor).
struct logical_xor {
  static constexpr auto types = dtypes::boolean;
  static constexpr bool commutative = true;
  template <class T> constexpr T operator()(T x, T y) const { return kiln::logical_xor(x, y); }
};

}  // namespace kiln::op

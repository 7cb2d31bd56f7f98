#pragma once
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Bit by bit or of two integers (ONNX BitwiseOr).
struct bitwise_or {
  static constexpr auto types = dtypes::integers;
  static constexpr bool commutative = true;
  template <class T> constexpr T operator()(T x, T y) const { return x | y; }
};

}  // namespace kiln::op

#pragma once
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Bit by bit xor of two integers (ONNX BitwiseXor).
struct bitwise_xor {
  static constexpr auto types = dtypes::integers;
  static constexpr bool commutative = true;
  template <class T> constexpr T operator()(T x, T y) const { return x ^ y; }
};

}  // namespace kiln::op

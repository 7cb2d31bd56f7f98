#pragma once
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Every bit of an integer inverted (ONNX BitwiseNot).
struct bitwise_not {
  static constexpr auto types = dtypes::integers;
  template <class T> constexpr T operator()(T x) const { return ~x; }
};

}  // namespace kiln::op

#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Remainder of the floored quotient, with the sign of y (Python %; ONNX Mod); an integer modulo 0 is itself.
struct mod {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  template <class T> constexpr T operator()(T x, T y) const { return detail::floored_remainder(x, y); }
};

}  // namespace kiln::op

#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// x over 2^count rounded down; 0, or -1 for a negative x, for a count beyond the width (ONNX BitShift, direction
/// RIGHT).
struct shift_right {
  static constexpr auto types = dtypes::integers;
  template <class T> constexpr T operator()(T x, T count) const { return detail::shifted_right(x, count); }
};

}  // namespace kiln::op

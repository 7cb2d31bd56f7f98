#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// x times 2^count with the upper bits lost; 0 for a count beyond the width (ONNX BitShift, direction LEFT).
struct shift_left {
  static constexpr auto types = dtypes::integers;
  template <class T> constexpr T operator()(T x, T count) const { return detail::shifted_left(x, count); }
};

}  // namespace kiln::op

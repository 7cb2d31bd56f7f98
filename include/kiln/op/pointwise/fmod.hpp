#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Remainder of the truncated quotient, with the sign of x, exact (C fmod; ONNX Mod with fmod = 1); an integer modulo 0
/// is itself.
struct fmod {
  static constexpr auto types = dtypes::numbers;
  template <class T> constexpr T operator()(T x, T y) const { return detail::remainder(x, y); }
};

}  // namespace kiln::op

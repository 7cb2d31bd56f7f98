#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Whether x is above y; false beside NaN (ONNX Greater).
struct greater {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  template <class T> constexpr auto operator()(T x, T y) const { return detail::below(y, x); }
};

}  // namespace kiln::op

#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// Whether x is below y; false beside NaN (ONNX Less).
struct less {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  template <class T> constexpr auto operator()(T x, T y) const { return detail::below(x, y); }
};

}  // namespace kiln::op

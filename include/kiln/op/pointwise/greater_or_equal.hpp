#pragma once
#include "kiln/op/arithmetic.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Whether x is at least y; false beside NaN (ONNX GreaterOrEqual).
struct greater_or_equal {
  static constexpr auto types = dtypes::numbers | dtypes::dims;
  template <class T>
  constexpr auto operator()(T x, T y) const {
    if constexpr (std::is_same_v<T, dimension>)
      return detail::decided(at_most(y, x));
    else
      return x >= y;
  }
};

}  // namespace kiln::op

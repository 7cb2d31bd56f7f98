#pragma once
#include "kiln/op/arithmetic.hpp"

namespace kiln::op {

/// x where not negative, slope * x elsewhere (ONNX PRelu).
struct prelu {
  static constexpr auto types = dtypes::numbers;
  template <class T> constexpr T operator()(T x, T slope) const {
    return kiln::select(x < splat<T>(0), detail::wrapping_mul(slope, x), x);
  }
};

}  // namespace kiln::op

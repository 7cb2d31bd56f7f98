#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// x where positive, alpha (e^x - 1) elsewhere (ONNX Elu).
struct elu {
  float alpha = 1;
  template <class T> constexpr T operator()(T x) const {
    return kiln::select(x > splat<T>(0), x, splat<T>(alpha) * kiln::expm1(x));
  }
};

}  // namespace kiln::op

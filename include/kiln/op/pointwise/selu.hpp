#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// gamma times x where positive, gamma alpha (e^x - 1) elsewhere (ONNX Selu).
struct selu {
  float alpha = 1.67326319217681884765625f;
  float gamma = 1.05070102214813232421875f;
  template <class T> constexpr T operator()(T x) const {
    return splat<T>(gamma) * kiln::select(x > splat<T>(0), x, splat<T>(alpha) * kiln::expm1(x));
  }
};

}  // namespace kiln::op

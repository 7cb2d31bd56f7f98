#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Gauss error function (ONNX Erf).
struct erf {
  template <class T> constexpr T operator()(T x) const { return kiln::erf(x); }
};

}  // namespace kiln::op

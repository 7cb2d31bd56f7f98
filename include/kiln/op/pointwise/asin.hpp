#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Inverse sine in radians (ONNX Asin).
struct asin {
  template <class T> constexpr T operator()(T x) const { return kiln::asin(x); }
};

}  // namespace kiln::op

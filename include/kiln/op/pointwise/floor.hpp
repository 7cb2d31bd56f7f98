#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Greatest integer not above x (ONNX Floor).
struct floor {
  template <class T> constexpr T operator()(T x) const { return kiln::floor(x); }
};

}  // namespace kiln::op

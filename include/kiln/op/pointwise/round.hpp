#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Nearest integer, ties to even (ONNX Round).
struct round {
  template <class T> constexpr T operator()(T x) const { return kiln::round(x); }
};

}  // namespace kiln::op

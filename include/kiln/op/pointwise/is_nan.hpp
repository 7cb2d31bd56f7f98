#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Whether x is not a number (ONNX IsNaN).
struct is_nan {
  template <class T> constexpr auto operator()(T x) const { return kiln::isnan(x); }
};

}  // namespace kiln::op

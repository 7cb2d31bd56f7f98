#pragma once
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// The element itself (ONNX Identity).
struct identity {
  static constexpr auto types = dtypes::movable | dtypes::dims;
  template <class T> constexpr T operator()(T x) const { return x; }
};

}  // namespace kiln::op

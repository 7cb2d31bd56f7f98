#pragma once
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// The same value as another dtype (ONNX Cast): the computation is the identity, storing the result converts.
struct convert {
  dtype to = dtype::f32;
  static constexpr auto types = dtypes::convertible | dtypes::dims;
  constexpr dtype result_type(dtype) const { return to; }
  template <class T> constexpr T operator()(T x) const { return x; }
};

}  // namespace kiln::op

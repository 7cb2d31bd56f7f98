#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// x^y, both of one dtype (ONNX Pow; the importer converts); integers wrap, and a negative power of an integer is its
/// reciprocal truncated toward zero.
struct pow {
  static constexpr auto types = dtypes::numbers;
  template <class T> constexpr T operator()(T x, T y) const { return kiln::pow(x, y); }
};

}  // namespace kiln::op

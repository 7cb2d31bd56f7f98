#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Whether x is an infinity of a sign that is looked for (ONNX IsInf).
struct is_inf {
  bool detect_negative = true;
  bool detect_positive = true;
  template <class T> constexpr mask_t<T> operator()(T x) const {
    const auto infinite = kiln::isinf(x);
    if (detect_negative && detect_positive) return infinite;
    if (detect_positive) return kiln::logical_and(infinite, x > splat<T>(0));
    if (detect_negative) return kiln::logical_and(infinite, x < splat<T>(0));
    return kiln::logical_and(infinite, x != x);
  }
};

}  // namespace kiln::op

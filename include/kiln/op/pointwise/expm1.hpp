#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// e^x - 1, accurate near zero.
struct expm1 {
  template <class T> constexpr T operator()(T x) const { return kiln::expm1(x); }
};

}  // namespace kiln::op

#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// 1 / sqrt(x).
struct rsqrt {
  template <class T> constexpr T operator()(T x) const { return kiln::rsqrt(x); }
};

}  // namespace kiln::op

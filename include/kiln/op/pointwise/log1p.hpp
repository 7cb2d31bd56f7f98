#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// ln(1 + x), accurate near zero.
struct log1p {
  template <class T> constexpr T operator()(T x) const { return kiln::log1p(x); }
};

}  // namespace kiln::op

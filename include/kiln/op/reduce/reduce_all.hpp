#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Whether every bool holds along the axes (none: all of them); reduced extents become 1; true over nothing.
struct reduce_all {
  ints axes{};
  static constexpr auto types = dtypes::boolean;
  template <class T> constexpr T identity() const { return kiln::logical_not(T{}); }
  template <class T> constexpr T combine(T acc, T x) const { return kiln::logical_and(acc, x); }
};

}  // namespace kiln::op

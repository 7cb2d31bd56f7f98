#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Whether some bool holds along the axes (none: all of them); reduced extents become 1; false over nothing.
struct reduce_any {
  ints axes{};
  static constexpr auto types = dtypes::boolean;
  template <class T> constexpr T identity() const { return T{}; }
  template <class T> constexpr T combine(T acc, T x) const { return kiln::logical_or(acc, x); }
};

}  // namespace kiln::op

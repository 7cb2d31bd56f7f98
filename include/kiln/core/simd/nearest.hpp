#pragma once
#include "kiln/core/math/basic.hpp"
#include "kiln/core/simd.hpp"

namespace kiln {

/// `round` of each lane, by one instruction where there is one.
template <is_vec V> KILN_FN V nearest(V x) {
  if constexpr (requires { elementary::native_ops<V>::nearest(x); })
    return elementary::native_ops<V>::nearest(x);
  else
    return round(x);
}

}  // namespace kiln

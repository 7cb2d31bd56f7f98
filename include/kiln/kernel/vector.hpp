#pragma once

#include <cstddef>
#include <cstdint>

#include "kiln/core/simd.hpp"

namespace kiln::kernels {

/// a * b + c, in one rounding where that is one instruction: kernels never pay for an emulated one.
template <is_vec V>
KILN_FN V multiply_add(V a, V b, V c) {
  if constexpr (has_fma)
    return elementary::native_ops<V>::fma(a, b, c);
  else
    return a * b + c;
}

}  // namespace kiln::kernels

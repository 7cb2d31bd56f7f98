#pragma once
#include "kiln/core/simd.hpp"

namespace kiln::kernels {

/// Eight floats as doubles, by one instruction where there is one: g++ 12 converts them by halves.
template <is_vec D> KILN_FN D as_doubles(vec<float, lanes<D>> v) {
  if constexpr (native_bytes == 64 && sizeof(D) == 64)
    return (D)_mm512_maskz_cvtps_pd(0xff, v);
  else
    return convert<D>(v);
}

}  // namespace kiln::kernels

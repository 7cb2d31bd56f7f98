#pragma once
#include <cstdint>

#include "kiln/core/simd.hpp"

namespace kiln::kernels {

/// All bits of the first n lanes.
template <is_vec I> KILN_FN I first_lanes(int n) {
  I lane;
  for (int i = 0; i < lanes<I>; ++i) lane[i] = i;
  return (I)(lane < broadcast<I>(n));
}

using bits_of_512 = long long __attribute__((vector_size(64)));

/// The lanes of two vectors of 16 floats, low ones first, at indices in [0, 32); for AVX-512.
template <is_vec V, is_vec I> KILN_FN V picked_lanes(V low, V high, I index) {
  return (V)_mm512_permutex2var_ps(low, (bits_of_512)index, high);
}

}  // namespace kiln::kernels

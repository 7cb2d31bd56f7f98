#pragma once
#include "kiln/backend/hip/kernels/index/arguments.hpp"
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/core/math/philox.hpp"

namespace kiln::gpu {

/// Numbers 2 `pair` and, where there is one, 2 `pair` + 1 of `random_uniform`.
template <class T, class Index> KILN_FN void random_uniform(T* out, const random_sizes& n, Index pair) {
  const philox drawn(static_cast<u64>(pair), static_cast<u64>(n.seed));
  const uniform_range range{n.low, n.width, n.least, n.most};
  KILN_UNROLL
  for (int j = 0; j < 2; ++j) {
    const i64 at = 2 * static_cast<i64>(pair) + j;
    if (at < n.count) out[at] = stored<T>(range.at(drawn.number(j)));
  }
}

}  // namespace kiln::gpu

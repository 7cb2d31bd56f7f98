#pragma once
#include "kiln/backend/hip/kernels/platform.hpp"

namespace kiln::device {

/// A copy between two layouts: extents and both layouts' steps, outermost first.
struct copy_sizes {
  i64 total;
  i64 lens[8], from[8], to[8];
};

/// One thread's part: elements `first`, `first + step`, ….
template <int Rank, class T>
KILN_FN void copy_any(T* to, const T* from, const copy_sizes& s, i64 first, i64 step) {
  for (i64 i = first; i < s.total; i += step) {
    i64 rest = i, a = 0, b = 0;
    KILN_UNROLL
    for (int d = Rank - 1; d >= 0; --d) {
      const i64 q = d == 0 ? 0 : rest / s.lens[d], at = d == 0 ? rest : rest - q * s.lens[d];
      rest = q;
      a += at * s.from[d];
      b += at * s.to[d];
    }
    to[b] = from[a];
  }
}

}  // namespace kiln::device

#pragma once
#include "kiln/backend/hip/kernels/elements.hpp"

namespace kiln::device {

/// The determinant of the n x n matrix `row`, by elimination with row pivots in `work`, a block's threads together. The
/// rest of the elimination goes to `left`.
template <int Lanes, class T, class V>
KILN_FN void determinant(T* out, T* left, V* work, const T* in, i64 n, i64 row, int lane) {
  const i64 base = row * n * n;
  V* const a = work + base;
  const auto size = [](V v) { return v < V(0) ? -v : v; };
  for (i64 k = lane; k < n * n; k += Lanes) a[k] = value_of(in[base + k]);
  KILN_SHARED i64 shared[Lanes / 32 + 1];
  V product = V(1);
  for (i64 c = 0; c < n; ++c) {
    sync_block();
    i64 pivot = -1;
    const auto better = [&](i64 p, i64 q) {
      if (p < 0 || q < 0) return p < 0 ? q : p;
      const V x = size(a[p * n + c]), y = size(a[q * n + c]);
      return y > x || (y == x && q < p) ? q : p;
    };
    for (i64 r = c + lane; r < n; r += Lanes) pivot = better(pivot, r);
    pivot = join_lanes<Lanes>(pivot, shared, better);
    if (a[pivot * n + c] == V(0)) {
      product = V(0);
      break;
    }
    sync_block();
    if (pivot != c) {
      for (i64 k = c + lane; k < n; k += Lanes) {
        const V held = a[c * n + k];
        a[c * n + k] = a[pivot * n + k], a[pivot * n + k] = held;
      }
      product = -product;
    }
    sync_block();
    const V diagonal = a[c * n + c];
    product *= diagonal;
    const i64 side = n - c - 1;
    for (i64 k = lane; k < side * side; k += Lanes) {
      const i64 r = c + 1 + k / side, q = c + 1 + k % side;
      a[r * n + q] -= a[r * n + c] / diagonal * a[c * n + q];
    }
  }
  sync_block();
  for (i64 k = lane; k < n * n; k += Lanes) left[base + k] = stored<T>(a[k]);
  if (lane == 0) out[row] = stored<T>(product);
}

}  // namespace kiln::device

#pragma once
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/backend/hip/kernels/reduce/arguments.hpp"

namespace kiln::gpu {

/// Of an n x n matrix that a block's threads work on together: the row from `column` on whose element there is the
/// greatest, the first of several. All threads get it.
template <int Lanes, class V> KILN_FN i64 pivot_row(const V* a, i64 n, i64 column, int lane, i64* shared) {
  const auto size = [](V v) { return v < V(0) ? -v : v; };
  const auto better = [&](i64 p, i64 q) {
    if (p < 0 || q < 0) return p < 0 ? q : p;
    const V x = size(a[p * n + column]), y = size(a[q * n + column]);
    return y > x || (y == x && q < p) ? q : p;
  };
  i64 pivot = -1;
  for (i64 r = column + lane; r < n; r += Lanes) pivot = better(pivot, r);
  return join_lanes<Lanes>(pivot, shared, better);
}
template <int Lanes, class V> KILN_FN void swap_rows(V* a, i64 n, i64 one, i64 other, int lane) {
  for (i64 k = lane; k < n && one != other; k += Lanes) {
    const V held = a[one * n + k];
    a[one * n + k] = a[other * n + k], a[other * n + k] = held;
  }
}

/// The determinant of the n x n matrix `row`, by elimination with row pivots in `work`, a block's threads together. The
/// rest of the elimination goes to `left`.
template <int Lanes, class T, class V>
KILN_FN void determinant(T* out, T* left, V* work, const T* in, i64 n, i64 row, int lane) {
  const i64 base = row * n * n;
  V* const a = work + base;
  for (i64 k = lane; k < n * n; k += Lanes) a[k] = value_of(in[base + k]);
  KILN_SHARED i64 shared[Lanes / 32 + 1];
  V product = V(1);
  for (i64 c = 0; c < n; ++c) {
    sync_block();
    const i64 pivot = pivot_row<Lanes>(a, n, c, lane, shared);
    if (a[pivot * n + c] == V(0)) {
      product = V(0);
      break;
    }
    sync_block();
    swap_rows<Lanes>(a, n, c, pivot, lane);
    if (pivot != c) product = -product;
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

/// The inverse of the n x n matrix `row`, by Gauss and Jordan's elimination with row pivots in `work`, which holds two
/// matrices for each row; NaN throughout where that is singular. What is left of the matrix goes to `left`.
template <int Lanes, class T, class V>
KILN_FN void inverted(T* out, T* left, V* work, const T* in, i64 n, i64 row, int lane) {
  const i64 base = row * n * n;
  V *const a = work + 2 * base, *const b = a + n * n;
  for (i64 k = lane; k < n * n; k += Lanes) a[k] = value_of(in[base + k]), b[k] = V(k % (n + 1) == 0);
  KILN_SHARED i64 shared[Lanes / 32 + 1];
  bool singular = false;
  for (i64 c = 0; c < n; ++c) {
    sync_block();
    const i64 pivot = pivot_row<Lanes>(a, n, c, lane, shared);
    singular = a[pivot * n + c] == V(0);
    if (singular) break;
    sync_block();
    swap_rows<Lanes>(a, n, c, pivot, lane);
    swap_rows<Lanes>(b, n, c, pivot, lane);
    sync_block();
    // a thread keeps to its columns; the pivot's own is read by all, and stays as it is
    const V diagonal = a[c * n + c];
    for (i64 q = lane; q < 2 * n; q += Lanes) {
      if (q == c) continue;
      V* const column = q < n ? a + q : b + (q - n);
      const V over = column[c * n];
      for (i64 r = 0; r < n; ++r)
        if (r != c) column[r * n] -= a[r * n + c] / diagonal * over;
      column[c * n] = over / diagonal;
    }
  }
  sync_block();
  for (i64 k = lane; k < n * n; k += Lanes) {
    out[base + k] = stored<T>(singular ? V(bits_as_float(0x7fc00000u)) : b[k]);
    left[base + k] = stored<T>(a[k]);
  }
}

}  // namespace kiln::gpu

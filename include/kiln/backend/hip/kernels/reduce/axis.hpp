#pragma once
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/backend/hip/kernels/reduce/arguments.hpp"

// Ops that work along one axis: a tensor is [outer, extent, inner], and a row its elements along the axis. `Lanes`
// threads of a block work a row.

namespace kiln::gpu {

/// Whether element x at position i comes before y at j: greater (or less) first, a NaN before anything (after it), of
/// equals the lower position (the higher with `Last`).
template <bool Greatest, bool Last, class V> KILN_FN bool comes_before(V x, i64 i, V y, i64 j) {
  const bool x_nan = x != x, y_nan = y != y;
  const bool greater = x_nan ? !y_nan : x > y, less = y_nan ? !x_nan : x < y;
  if (greater || less) return greater == Greatest;
  return Last ? i > j : i < j;
}

/// The position of a row's best element. A NaN is the best of any row.
template <bool Greatest, bool Last, int Lanes, class T>
KILN_FN void arg_extreme(i64* out, const T* in, i64 extent, i64 inner, i64 row, int lane) {
  using V = decltype(value_of(*in));
  const T* from = in + row / inner * extent * inner + row % inner;
  const auto better = [](V x, i64 i, V y, i64 j) {
    if (x != x || y != y) return x != x && (y == y || (Last ? i > j : i < j));
    return comes_before<Greatest, Last>(x, i, y, j);
  };
  i64 best = lane < extent ? lane : 0;
  V value = value_of(from[best * inner]);
  for (i64 k = lane + Lanes; k < extent; k += Lanes) {
    const V x = value_of(from[k * inner]);
    if (better(x, k, value, best)) value = x, best = k;
  }
  const auto join = [&](i64 a, i64 b) {
    return better(value_of(from[b * inner]), b, value_of(from[a * inner]), a) ? b : a;
  };
  if constexpr (Lanes > 1) {
    KILN_SHARED i64 shared[Lanes / 32 + 1];
    best = join_lanes<Lanes>(best, shared, join);
  }
  if (lane == 0) out[row] = best;
}

/// Running sums or products; with `Lanes` above 1 the whole block works a row.
template <bool Product, bool Exclusive, bool Reverse, int Lanes, class T>
KILN_FN void running(T* out, const T* in, i64 extent, i64 inner, i64 row, int lane) {
  using V = decltype(value_of(*in));
  const i64 base = row / inner * extent * inner + row % inner;
  const auto place = [&](i64 k) { return base + (Reverse ? extent - 1 - k : k) * inner; };
  const auto join = [](V a, V b) -> V {
    if constexpr (is_real<V>)
      return Product ? a * b : a + b;
    else
      return static_cast<V>(Product ? static_cast<u64>(a) * static_cast<u64>(b)
                                    : static_cast<u64>(a) + static_cast<u64>(b));
  };
  V carried = V(Product ? 1 : 0);
  if constexpr (Lanes == 1) {
    for (i64 k = 0; k < extent; ++k) {
      const V next = join(carried, value_of(in[place(k)]));
      out[place(k)] = stored<T>(Exclusive ? carried : next);
      carried = next;
    }
  } else {
    KILN_SHARED V sums[Lanes];
    for (i64 first = 0; first < extent; first += Lanes) {
      const i64 k = first + lane;
      V mine = k < extent ? value_of(in[place(k)]) : V(Product ? 1 : 0);
      sums[lane] = mine;
      sync_block();
      for (int reach = 1; reach < Lanes; reach *= 2) {
        const V before = lane >= reach ? sums[lane - reach] : V(Product ? 1 : 0);
        sync_block();
        mine = join(before, mine);
        sums[lane] = mine;
        sync_block();
      }
      const V through = join(carried, mine), until = lane == 0 ? carried : join(carried, sums[lane - 1]);
      if (k < extent) out[place(k)] = stored<T>(Exclusive ? until : through);
      carried = join(carried, sums[Lanes - 1]);
      sync_block();
    }
  }
}

}  // namespace kiln::gpu

#pragma once
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/backend/hip/kernels/reduce/arguments.hpp"

// Ops that work along one axis: a tensor is [outer, extent, inner], and a row its elements along the axis.

namespace kiln::gpu {

/// Whether element x at position i comes before y at j: greater (or less) first, a NaN before anything (after it), of
/// equals the lower position (the higher with `Last`).
template <bool Greatest, bool Last, class V> KILN_FN bool comes_before(V x, i64 i, V y, i64 j) {
  const bool x_nan = x != x, y_nan = y != y;
  const bool greater = x_nan ? !y_nan : x > y, less = y_nan ? !x_nan : x < y;
  if (greater || less) return greater == Greatest;
  return Last ? i > j : i < j;
}

/// How a block of `Parts * Across` threads divides rows: `Across` threads side by side work rows that are neighbors in
/// memory, `Parts` threads each row. With one across, a row is `Parts` neighboring threads.
template <int Across, int Parts> struct axis_part {
  i64 base;     ///< of the row's first element
  i64 row;      ///< counted through all
  int part;     ///< of the row
  bool exists;  ///< of threads past the last row the answer counts for nothing
  KILN_FN axis_part(i64 extent, i64 inner, i64 at, int lane) : part(lane / Across), exists(true) {
    if constexpr (Across == 1) {
      row = at;
      base = inner == 1 ? row * extent : row / inner * extent * inner + row % inner;
    } else {
      const i64 blocks = (inner + Across - 1) / Across, outer = at / blocks;
      i64 c = (at - outer * blocks) * Across + lane % Across;
      exists = c < inner;
      c = exists ? c : inner - 1;
      row = outer * inner + c, base = outer * extent * inner + c;
    }
  }
};

/// The position of a row's best element. A NaN is the best of any row.
template <bool Greatest, bool Last, int Across, int Parts, class T>
KILN_FN void arg_extreme(i64* out, const T* in, i64 extent, i64 inner, i64 at, int lane) {
  using V = decltype(value_of(*in));
  const axis_part<Across, Parts> my(extent, inner, at, lane);
  const T* from = in + my.base;
  const auto better = [](V x, i64 i, V y, i64 j) {
    if (x != x || y != y) return x != x && (y == y || (Last ? i > j : i < j));
    return comes_before<Greatest, Last>(x, i, y, j);
  };
  i64 best = my.part < extent ? my.part : 0;
  V value = value_of(from[best * inner]);
  const auto see = [&](V x, i64 k) {  // of a later position
    const bool over = Greatest ? x > value : x < value, more = Last ? over || x == value : over;
    const bool take = x != x ? Last || value == value : value == value && more;
    if (take) value = x, best = k;
  };
  constexpr int each = 8;  // reads under way
  i64 k = my.part + Parts;
  for (; k + (each - 1) * Parts < extent; k += each * Parts) {
    T x[each];
    KILN_UNROLL
    for (int u = 0; u < each; ++u) x[u] = from[(k + u * Parts) * inner];
    KILN_UNROLL
    for (int u = 0; u < each; ++u) see(value_of(x[u]), k + u * Parts);
  }
  for (; k < extent; k += Parts) see(value_of(from[k * inner]), k);
  const auto join = [&](V x, i64 place) {
    if (better(x, place, value, best)) value = x, best = place;
  };
  if constexpr (Across == 1) {
    KILN_UNROLL
    for (int m = (Parts < 32 ? Parts : 32) / 2; m > 0; m /= 2) {
      const V other = lane_value(value, m);
      join(other, lane_value(best, m));
    }
  }
  constexpr int left = Across == 1 ? Parts / 32 : Parts;  // what shared memory joins
  if constexpr (left > 1) {
    KILN_SHARED V values[left * Across];
    KILN_SHARED i64 places[left * Across];
    if (Across > 1 || lane % 32 == 0) {
      const int slot = Across > 1 ? lane : lane / 32;
      values[slot] = value, places[slot] = best;
    }
    sync_block();
    if (my.part == 0) {
      KILN_UNROLL
      for (int p = 1; p < left; ++p) join(values[p * Across + lane % Across], places[p * Across + lane % Across]);
    }
  }
  if (my.part == 0 && my.exists) out[my.row] = best;
}

/// Running sums or products, in one of three ways: a thread a row, a block a row (`Parts` threads, one across), or the
/// parts of neighboring rows one after the other, each read twice.
template <bool Product, bool Exclusive, bool Reverse, int Across, int Parts, class T>
KILN_FN void running(T* out, const T* in, i64 extent, i64 inner, i64 at, int lane) {
  using V = decltype(value_of(*in));
  const axis_part<Across, Parts> my(extent, inner, at, lane);
  const auto place = [&](i64 k) { return my.base + (Reverse ? extent - 1 - k : k) * inner; };
  const auto join = [](V a, V b) -> V {
    if constexpr (is_real<V>)
      return Product ? a * b : a + b;
    else
      return static_cast<V>(Product ? static_cast<u64>(a) * static_cast<u64>(b)
                                    : static_cast<u64>(a) + static_cast<u64>(b));
  };
  constexpr V none = V(Product ? 1 : 0);
  constexpr int each = 8;  // reads under way
  V carried = none;
  if constexpr (Parts == 1 || Across > 1) {
    const i64 part = (extent + Parts - 1) / Parts, first = my.part * part,
              end = first + part < extent ? first + part : extent;
    const auto go = [&](auto see) {
      i64 k = first;
      for (; k + each <= end; k += each) {
        T x[each];
        KILN_UNROLL
        for (int u = 0; u < each; ++u) x[u] = in[place(k + u)];
        KILN_UNROLL
        for (int u = 0; u < each; ++u) see(value_of(x[u]), k + u);
      }
      for (; k < end; ++k) see(value_of(in[place(k)]), k);
    };
    if constexpr (Across > 1) {
      V sum = none;
      go([&](V x, i64) { sum = join(sum, x); });
      KILN_SHARED V sums[Parts * Across];
      sums[lane] = sum;
      sync_block();
      for (int p = 0; p < my.part; ++p) carried = join(carried, sums[p * Across + lane % Across]);
    }
    if (!my.exists) return;
    go([&](V x, i64 k) {
      const V next = join(carried, x);
      out[place(k)] = stored<T>(Exclusive ? carried : next);
      carried = next;
    });
  } else {
    // a warp sums by halves: `before` is of the lanes before this one, `all` of those that a step joined
    constexpr int warps = Parts / 32;
    KILN_SHARED V sums[warps];
    const int warp = lane / 32;
    V x = lane < extent ? value_of(in[place(lane)]) : none;
    for (i64 first = 0; first < extent; first += Parts) {
      const i64 k = first + lane, ahead = k + Parts;
      const V next = ahead < extent ? value_of(in[place(ahead)]) : none;
      V before = none, all = x;
      KILN_UNROLL
      for (int m = 1; m < 32; m *= 2) {
        const V other = lane_value(all, m);
        const bool upper = (lane & m) != 0;
        if (upper) before = join(other, before);
        all = upper ? join(other, all) : join(all, other);
      }
      if (lane % 32 == 0) sums[warp] = all;
      sync_block();
      V whole = carried;
      KILN_UNROLL
      for (int w = 0; w < warps; ++w) {
        if (w == warp) before = join(whole, before);
        whole = join(whole, sums[w]);
      }
      if (k < extent) out[place(k)] = stored<T>(Exclusive ? before : join(before, x));
      carried = whole, x = next;
      sync_block();
    }
  }
}

}  // namespace kiln::gpu

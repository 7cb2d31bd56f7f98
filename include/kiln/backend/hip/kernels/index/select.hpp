#pragma once
#include "kiln/backend/hip/kernels/index/arguments.hpp"
#include "kiln/backend/hip/kernels/platform/elements.hpp"

// Ops that find how many results there are: a launch counts them in tiles, another one sums the counts, and when the
// host has read the sum, a third writes. `counts` holds the sum, then for each tile how many come before it.

namespace kiln::gpu {

/// The sum of what the threads before this one of a block give, and of all; `shared` has room for a value of each.
template <int Lanes, class V> KILN_FN V sum_before(V own, V* shared, int lane, V& all) {
  shared[lane] = own;
  sync_block();
  for (int step = 1; step < Lanes; step *= 2) {
    const V more = lane >= step ? shared[lane - step] : V(0);
    sync_block();
    shared[lane] += more;
    sync_block();
  }
  all = shared[Lanes - 1];
  const V before = lane == 0 ? V(0) : shared[lane - 1];
  sync_block();
  return before;
}

template <class T> KILN_FN bool is_nonzero(T x) {
  const auto v = value_of(x);
  return v != decltype(v)(0);
}

/// How many elements of tile `row` are not zero.
template <int Lanes, class T>
KILN_FN void count_tile(i64* counts, const T* in, const select_sizes& n, i64 row, int lane) {
  KILN_SHARED int shared[Lanes / 32];
  const i64 first = row * select_tile;
  int some = 0;
  KILN_UNROLL
  for (int k = 0; k < select_tile / Lanes; ++k) {
    const i64 i = first + k * Lanes + lane;
    if (i < n.total && is_nonzero(in[i])) ++some;
  }
  some = join_lanes<Lanes>(some, shared, [](int a, int b) { return a + b; });
  if (lane == 0) counts[1 + row] = some;
}

/// Makes counts of `tiles` sums, by one block.
template <int Lanes> KILN_FN void sum_counts(i64* counts, i64 tiles, int lane) {
  KILN_SHARED i64 shared[Lanes];
  const i64 each = (tiles + Lanes - 1) / Lanes, first = lane * each, end = first + each < tiles ? first + each : tiles;
  i64 own = 0, all = 0;
  for (i64 k = first; k < end; ++k) own += counts[1 + k];
  i64 before = sum_before<Lanes>(own, shared, lane, all);
  for (i64 k = first; k < end; ++k) {
    const i64 some = counts[1 + k];
    counts[1 + k] = before;
    before += some;
  }
  if (lane == 0) counts[0] = all;
}

/// Calls put(number among all, element) for the elements of tile `row` that are not zero.
template <int Lanes, class T, class Put>
KILN_FN void select_tile_elements(const i64* counts, const T* in, const select_sizes& n, i64 row, int lane, Put put) {
  constexpr int each = select_tile / Lanes;
  KILN_SHARED unsigned char holds[select_tile];
  KILN_SHARED unsigned short found[select_tile];
  KILN_SHARED int sums[Lanes];
  const i64 first = row * select_tile;
  KILN_UNROLL
  for (int k = 0; k < each; ++k) {
    const i64 i = first + k * Lanes + lane;
    holds[k * Lanes + lane] = i < n.total && is_nonzero(in[i]);
  }
  sync_block();
  int own = 0, all = 0;
  KILN_UNROLL
  for (int k = 0; k < each; ++k) own += holds[lane * each + k];
  int at = sum_before<Lanes>(own, sums, lane, all);
  KILN_UNROLL
  for (int k = 0; k < each; ++k)
    if (holds[lane * each + k]) found[at++] = static_cast<unsigned short>(lane * each + k);
  sync_block();
  const i64 before = counts[1 + row];
  for (int k = lane; k < all; k += Lanes) put(before + k, first + found[k]);
}

/// The indices of elements that are not zero: out[dim, number]. `Index` holds every place.
template <int Rank, int Lanes, class Index, class T>
KILN_FN void nonzero_tile(i64* out, const i64* counts, const T* in, const select_sizes& n, i64 row, int lane) {
  const i64 count = counts[0];
  select_tile_elements<Lanes>(counts, in, n, row, lane, [&](i64 number, i64 element) {
    Index rest = static_cast<Index>(element);
    KILN_UNROLL
    for (int d = Rank - 1; d >= 0; --d) {
      const auto extent = static_cast<Index>(n.lens[d]);
      const Index q = d == 0 ? 0 : rest / extent;
      out[d * count + number] = static_cast<i64>(rest - q * extent);
      rest = q;
    }
  });
}
/// The places of elements that are not zero, in order.
template <int Lanes, class I, class T>
KILN_FN void places_tile(I* places, const i64* counts, const T* in, const select_sizes& n, i64 row, int lane) {
  select_tile_elements<Lanes>(counts, in, n, row, lane,
                              [&](i64 number, i64 element) { places[number] = static_cast<I>(element); });
}

/// How many elements a range has, start, start + delta, ... before limit, as op::progression counts them, or why it has
/// none that can be counted.
template <class T> KILN_FN void count_range(i64* count, T start, T limit, T delta) {
  const auto first = value_of(start), end = value_of(limit), step = value_of(delta);
  using V = decltype(value_of(start));
  if (step == V(0)) {
    *count = range_without_step;
  } else if constexpr (is_real<V>) {
    const double steps =
        kiln::ceil((static_cast<double>(end) - static_cast<double>(first)) / static_cast<double>(step));
    *count = !(steps < 4e15) ? range_without_end : steps > 0 ? static_cast<i64>(steps) : 0;
  } else if (step > V(0) ? first >= end : first <= end) {
    *count = 0;
  } else {
    // differences of 64 bits may need all of them
    const u64 gap = step > V(0) ? static_cast<u64>(end) - static_cast<u64>(first)
                                : static_cast<u64>(first) - static_cast<u64>(end),
              by = step > V(0) ? static_cast<u64>(step) : 0 - static_cast<u64>(step), n = (gap - 1) / by;
    *count = n < u64(most_of_range) ? static_cast<i64>(n) + 1 : most_of_range + 1;
  }
}
/// Element `at` of a range; integers wrap.
template <class T, class Index> KILN_FN void range_element(T* out, T start, T delta, Index at) {
  using V = decltype(value_of(start));
  if constexpr (is_real<V>)
    out[at] = stored<T>(value_of(start) + static_cast<V>(at) * value_of(delta));
  else
    out[at] =
        static_cast<T>(static_cast<u64>(value_of(start)) + static_cast<u64>(at) * static_cast<u64>(value_of(delta)));
}

}  // namespace kiln::gpu

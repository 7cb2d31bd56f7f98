#pragma once
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/backend/hip/kernels/reduce/arguments.hpp"

// The best elements of rows and their positions, best first: a NaN is greater than any number, and of equals the lower
// position comes first. An element's entry holds its key and its position, and is less where the element comes before.
// A block sorts the entries of a tile of a row in shared memory and keeps the best; tiles are merged in pairs.

namespace kiln::gpu {

/// An entry whose key or position has more than 32 bits; others are one u64.
struct wide_entry {
  u64 key, at;
  KILN_FN friend bool operator<(const wide_entry& a, const wide_entry& b) {
    return a.key < b.key || (a.key == b.key && a.at < b.at);
  }
};

/// A float's bits as a number of the floats' order: both zeros are equal, and so are all NaNs, which come last.
template <class W> KILN_FN W ascending_bits(W bits, W infinity) {
  constexpr W sign = W(1) << (sizeof(W) * 8 - 1);
  const W size = bits & ~sign;
  if (size > infinity) return ~W(0);
  if (size == 0) return sign;
  return bits & sign ? ~bits : bits | sign;
}

/// A number that is less where an element comes before: of 32 bits for floats and integers of at most as many.
template <bool Greatest, class T> KILN_FN auto order_key(T x) {
  const auto v = value_of(x);
  using V = decltype(value_of(x));
  if constexpr (elementary::same<V, float>) {
    const u32 up = ascending_bits(__builtin_bit_cast(u32, v), u32(0x7f800000));
    return Greatest ? ~up : up;
  } else if constexpr (elementary::same<V, double>) {
    const u64 up = ascending_bits(__builtin_bit_cast(u64, v), u64(0x7ff) << 52);
    return Greatest ? ~up : up;
  } else {
    const u64 up = static_cast<u64>(v) ^ (is_signed<V> ? u64(1) << 63 : u64(0)), key = Greatest ? ~up : up;
    // an integer of few bits is above -2^31 or below 2^31, so all bits but the last 32 follow from these
    if constexpr (sizeof(T) <= 4)
      return static_cast<u32>(is_signed<V> ? key ^ 0x80000000u : key);
    else
      return key;
  }
}

template <class E> KILN_FN E worst_entry() {
  if constexpr (elementary::same<E, u64>)
    return ~u64(0);
  else
    return E{~u64(0), ~u64(0)};
}
template <bool Greatest, class E, class T> KILN_FN E entry_of(T x, i64 at) {
  if constexpr (elementary::same<E, u64>)
    return u64(order_key<Greatest>(x)) << 32 | u64(at);
  else
    return E{u64(order_key<Greatest>(x)), u64(at)};
}
template <class E> KILN_FN i64 place_of(const E& e) {
  if constexpr (elementary::same<E, u64>)
    return static_cast<i64>(e & 0xffffffffu);
  else
    return static_cast<i64>(e.at);
}

/// Where a row's elements begin, and where its results do.
KILN_FN i64 row_start(const topk_sizes& n, i64 row, i64 extent) {
  return row / n.inner * extent * n.inner + row % n.inner;
}

/// Rows of few elements: each element's rank is how many come before it. `Lanes` threads work a row.
template <bool Greatest, int Lanes, class T>
KILN_FN void best_of_short(T* values, i64* positions, const T* in, const topk_sizes& n, i64 row, int lane) {
  const T* from = in + row_start(n, row, n.extent);
  const i64 to = row_start(n, row, n.count);
  for (i64 k = lane; k < n.extent; k += Lanes) {
    const T x = from[k * n.inner];
    const auto key = order_key<Greatest>(x);
    i64 rank = 0;
    for (i64 j = 0; j < n.extent && rank < n.count; ++j) {
      const auto other = order_key<Greatest>(from[j * n.inner]);
      rank += other < key || (other == key && j < k);
    }
    if (rank < n.count) values[to + rank * n.inner] = x, positions[to + rank * n.inner] = k;
  }
}

template <class E> KILN_FN void put_in_order(E& a, E& b) {
  const E x = a, y = b;
  if (y < x) a = y, b = x;
}

/// Sorts the bitonic runs of 2 * `reach` of the first `count` entries in shared memory.
template <int Lanes, class E> KILN_FN void sort_bitonic(E* entries, int count, int reach, int lane) {
  for (; reach > 0; reach /= 2) {
    for (int i = lane; i < count / 2; i += Lanes) {
      const int at = 2 * i - (i & (reach - 1));
      put_in_order(entries[at], entries[at + reach]);
    }
    sync_block();
  }
}

/// Leaves the `Kept` least of each of `Rows` rows of a tile, `Tile` entries in shared memory, first, sorted, one row
/// after the other; all are powers of two. Sorted runs of `Kept` are halved in number: of two, the least of each entry
/// and its mirror image in the other are a bitonic run (Batcher, "Sorting networks and their applications", 1968).
template <int Tile, int Kept, int Lanes, int Rows = 1, class E> KILN_FN void keep_least(E* entries, int lane) {
  for (int run = 2; run <= Kept; run *= 2) {
    for (int i = lane; i < Tile / 2; i += Lanes) {
      const int at = i & (run / 2 - 1), first = 2 * (i - at);
      put_in_order(entries[first + at], entries[first + run - 1 - at]);
    }
    sync_block();
    sort_bitonic<Lanes>(entries, Tile, run / 4, lane);
  }
  for (int left = Tile; left > Rows * Kept; left /= 2) {
    constexpr int each = (Tile / 2 + Lanes - 1) / Lanes;
    E least[each];
    KILN_UNROLL
    for (int k = 0; k < each; ++k) {
      const int i = lane + k * Lanes, at = i & (Kept - 1), first = 2 * (i - at);
      if (i >= left / 2) continue;
      const E a = entries[first + at], b = entries[first + 2 * Kept - 1 - at];
      least[k] = b < a ? b : a;
    }
    sync_block();
    KILN_UNROLL
    for (int k = 0; k < each; ++k)
      if (const int i = lane + k * Lanes; i < left / 2) entries[i] = least[k];
    sync_block();
    sort_bitonic<Lanes>(entries, left / 2, Kept / 2, lane);
  }
}

/// A block reads tile `tile` of a row and leaves its `Kept` best in `entries`, in shared memory.
template <bool Greatest, int Tile, int Kept, int Lanes, class E, class T>
KILN_FN void sort_tile(E* entries, const T* in, const topk_sizes& n, i64 row, i64 tile, int lane) {
  const T* from = in + row_start(n, row, n.extent);
  for (int i = lane; i < Tile; i += Lanes) {
    const i64 at = tile * Tile + i;
    entries[i] = at < n.extent ? entry_of<Greatest, E>(from[at * n.inner], at) : worst_entry<E>();
  }
  sync_block();
  keep_least<Tile, Kept, Lanes>(entries, lane);
}

/// Rows of one tile each, a block a row.
template <bool Greatest, int Tile, int Kept, int Lanes, class E, class T>
KILN_FN void best_of_row(T* values, i64* positions, const T* in, const topk_sizes& n, i64 row, int lane) {
  KILN_SHARED E entries[Tile];
  sort_tile<Greatest, Tile, Kept, Lanes>(entries, in, n, row, 0, lane);
  const i64 from = row_start(n, row, n.extent), to = row_start(n, row, n.count);
  for (int i = lane; i < n.count; i += Lanes) {
    const i64 at = place_of(entries[i]);
    values[to + i * n.inner] = in[from + at * n.inner], positions[to + i * n.inner] = at;
  }
}

/// Rows of several: a block writes the run of one tile, `length` entries.
template <bool Greatest, int Tile, int Kept, int Lanes, class E, class T>
KILN_FN void best_of_tile(E* runs, const T* in, const topk_sizes& n, i64 run, int lane) {
  KILN_SHARED E entries[Tile];
  sort_tile<Greatest, Tile, Kept, Lanes>(entries, in, n, run / n.runs, run % n.runs, lane);
  for (int i = lane; i < n.length; i += Lanes) runs[n.to + run * n.length + i] = entries[i];
}

/// Merges each row's runs in pairs; a thread places one entry, or one after the end of a run that has no partner.
template <class E> KILN_FN void merge_runs(E* entries, const topk_sizes& n, i64 at) {
  const i64 pair = at / (2 * n.length), mine = at % (2 * n.length), pairs = (n.runs + 1) / 2;
  const i64 row = pair / pairs, run = pair % pairs * 2;
  const E* first = entries + n.from + (row * n.runs + run) * n.length;
  E* to = entries + n.to + pair * n.kept;
  if (run + 1 == n.runs) {
    if (mine < n.kept) to[mine] = mine < n.length ? first[mine] : worst_entry<E>();
    return;
  }
  const bool left = mine < n.length;
  const i64 own = left ? mine : mine - n.length;
  if (own >= n.kept) return;
  const E e = first[mine];
  const E* other = left ? first + n.length : first;
  i64 low = 0, high = n.length;
  while (low < high) {  // of equals, which are past a row's end, the left one comes first
    const i64 middle = (low + high) / 2;
    if (left ? other[middle] < e : !(e < other[middle]))
      low = middle + 1;
    else
      high = middle;
  }
  if (own + low < n.kept) to[own + low] = e;
}

/// The results from each row's one run.
template <class E, class T>
KILN_FN void write_best(T* values, i64* positions, const T* in, const E* entries, const topk_sizes& n, i64 at) {
  const i64 row = at / n.count, k = at % n.count, place = place_of(entries[n.from + row * n.length + k]);
  const i64 to = row_start(n, row, n.count) + k * n.inner;
  values[to] = in[row_start(n, row, n.extent) + place * n.inner], positions[to] = place;
}

}  // namespace kiln::gpu

#pragma once
#include "kiln/backend/hip/kernels/reduce/part_arguments.hpp"
#include "kiln/backend/hip/kernels/reduce/topk.hpp"

// Few best elements of long rows. A block reads a part of a row once. The least entries of groups of the first elements
// give a bound that at least as many as are wanted don't exceed, and what does is dropped; when there is no more room,
// the block sorts what it has, and the bound falls. (Johnson, Douze and Jegou, "Billion-scale similarity search with
// GPUs", 2017, filter by warps.) The runs of a row's parts are selected from in the same way.

namespace kiln::gpu {

/// The entry of the lane whose number differs in the bits of `mask`.
template <class E> KILN_FN E entry_of_lane(const E& e, int mask) {
  if constexpr (elementary::same<E, u64>)
    return lane_value(e, mask);
  else
    return E{lane_value(e.key, mask), lane_value(e.at, mask)};
}
/// The least entry that is greater; of the worst one itself.
template <class E> KILN_FN E after(const E& e) {
  if (!(e < worst_entry<E>())) return e;
  if constexpr (elementary::same<E, u64>)
    return e + 1;
  else
    return E{e.key, e.at + 1};  // a position is less than the greatest number
}

/// Leaves the `Kept` least of each of `Rows` rows' entries in shared memory, sorted, one row after the other; a row of
/// fewer ends with the worst ones. `load(row, i)` is the i-th of `extent` entries, of which a thread asks for several
/// before it uses one; `count`, at most `Kept`, are wanted. Neighboring threads work neighboring rows. `Room`, at least
/// 64 and 4 `Kept`: entries of a row in shared memory.
template <int Kept, int Room, int Rows, int Lanes, class E, class Load>
KILN_FN void select_least(E* entries, i64 extent, i64 count, int lane, Load load) {
  constexpr int step = Lanes / Rows, each = sizeof(E) <= 8 ? 8 : 4;
  // groups whose least entries give the bound: parts of a thread's elements, or neighboring threads
  constexpr int parts = 2 * Kept <= step ? 1 : 2 * Kept / step < each ? 2 * Kept / step : each;
  constexpr int fewest = 2 * Kept < 32 ? 32 : 2 * Kept;
  constexpr int together = Rows == 1 && fewest < step ? (step / fewest < 32 ? step / fewest : 32) : 1;
  constexpr int groups = step * parts / together;
  static_assert(Room >= 4 * Kept && Room >= groups && groups >= Kept, "rooms hold the groups");
  KILN_SHARED int filled[Rows];
  const int row = lane % Rows, first = lane / Rows;
  E under_way[each];
  const auto ask = [&](i64 base) {
    KILN_UNROLL
    for (int u = 0; u < each; ++u) {
      const i64 at = base + u * step + first;
      under_way[u] = at < extent ? load(row, at) : worst_entry<E>();
    }
  };
  ask(0);
  KILN_UNROLL
  for (int p = 0; p < parts; ++p) {
    E least = under_way[p];
    KILN_UNROLL
    for (int u = p + parts; u < each; u += parts)
      if (under_way[u] < least) least = under_way[u];
    KILN_UNROLL
    for (int mask = 1; mask < together; mask *= 2)
      if (const E other = entry_of_lane(least, mask); other < least) least = other;
    if (first % together == 0) entries[row * groups + p * (step / together) + first / together] = least;
  }
  if (lane < Rows) filled[lane] = 0;
  sync_block();
  keep_least<Rows * groups, Kept, Lanes, Rows>(entries, lane);
  E bound = after(entries[row * Kept + static_cast<int>(count) - 1]);
  sync_block();
  const auto forget_rest = [&] {  // what lies past the entries of each row
    for (int i = lane; i < Rows * Room; i += Lanes)
      if (i % Room >= filled[i / Room]) entries[i] = worst_entry<E>();
    sync_block();
  };
  for (i64 base = 0; base < extent; base += each * step) {
    for (unsigned pending = (1u << each) - 1;;) {
      KILN_UNROLL
      for (int u = 0; u < each; ++u) {
        if ((pending >> u & 1) == 0) continue;
        int place = Room;
        const bool passes = under_way[u] < bound;
        if (passes) place = atomic_add(&filled[row], 1);
        if (place < Room) entries[row * Room + place] = under_way[u];
        if (!passes || place < Room) pending &= ~(1u << u);
      }
      sync_block();
      bool full = false;
      KILN_UNROLL
      for (int r = 0; r < Rows; ++r) full = full || filled[r] > Room;
      if (!full) break;
      forget_rest();
      keep_least<Rows * Room, Kept, Lanes, Rows>(entries, lane);
      // the best of each row to the beginning of its room
      constexpr int moved = (Rows * Kept + Lanes - 1) / Lanes;
      E best[moved];
      KILN_UNROLL
      for (int m = 0; m < moved; ++m)
        if (const int i = lane + m * Lanes; i < Rows * Kept) best[m] = entries[i];
      sync_block();
      KILN_UNROLL
      for (int m = 0; m < moved; ++m)
        if (const int i = lane + m * Lanes; i < Rows * Kept) entries[i / Kept * Room + i % Kept] = best[m];
      if (lane < Rows) filled[lane] = Kept;
      sync_block();
      bound = entries[row * Room + static_cast<int>(count) - 1];
    }
    ask(base + each * step);
    sync_block();
  }
  const bool few = Rows == 1 && filled[0] <= Room / 2;
  forget_rest();
  if (few)
    keep_least<Rows * Room / 2, Kept, Lanes, Rows>(entries, lane);
  else
    keep_least<Rows * Room, Kept, Lanes, Rows>(entries, lane);
}

/// What a block selected of part `part` of rows from `first` on, of which `rows` exist: results where a row is one
/// part, else a run in scratch memory.
template <int Kept, int Rows, int Lanes, class E, class T>
KILN_FN void write_selected(T* values, i64* positions, E* runs, const T* in, const E* entries, const part_sizes& n,
                            i64 first, i64 rows, i64 part, int lane) {
  for (int i = lane; i < n.count * Rows; i += Lanes) {
    const int r = i % Rows, k = i / Rows;
    if (r >= rows) continue;
    const E e = entries[r * Kept + k];
    if (n.parts > 1) {
      runs[n.to + ((first + r) * n.parts + part) * n.count + k] = e;
    } else {
      const topk_sizes around{n.extent, n.inner, n.count, 1, 0, 0, 0, 0};
      const i64 at = place_of(e), to = row_start(around, first + r, n.count) + k * n.inner;
      values[to] = in[row_start(around, first + r, n.extent) + at * n.inner], positions[to] = at;
    }
  }
}

/// Block `block` of those that read elements: a part of `Rows` neighboring rows.
template <bool Greatest, int Kept, int Room, int Rows, int Lanes, class E, class T>
KILN_FN void select_part(T* values, i64* positions, E* runs, const T* in, const part_sizes& n, i64 block, int lane) {
  KILN_SHARED E entries[Rows * Room];
  const i64 groups = (n.inner + Rows - 1) / Rows, group = block / n.parts, part = block % n.parts;
  const i64 first = group / groups * n.inner + group % groups * Rows, left = n.inner - group % groups * Rows;
  const i64 begin = part * n.part, extent = n.extent - begin < n.part ? n.extent - begin : n.part;
  const T* const from = in + group / groups * n.extent * n.inner + group % groups * Rows + begin * n.inner;
  select_least<Kept, Room, Rows, Lanes>(entries, extent, n.count, lane, [&](int r, i64 i) {
    return r < left ? entry_of<Greatest, E>(from[i * n.inner + r], begin + i) : worst_entry<E>();
  });
  write_selected<Kept, Rows, Lanes>(values, positions, runs, in, entries, n, first, left, part, lane);
}

/// Block `block` of those that read runs: a part of a row's entries.
template <int Kept, int Room, int Lanes, class E, class T>
KILN_FN void select_runs(T* values, i64* positions, E* runs, const T* in, const part_sizes& n, i64 block, int lane) {
  KILN_SHARED E entries[Room];
  const i64 row = block / n.parts, part = block % n.parts, begin = part * n.part;
  const i64 extent = n.entries - begin < n.part ? n.entries - begin : n.part;
  const E* const from = runs + n.from + row * n.entries + begin;
  select_least<Kept, Room, 1, Lanes>(entries, extent, n.count, lane, [&](int, i64 i) { return from[i]; });
  write_selected<Kept, 1, Lanes>(values, positions, runs, in, entries, n, row, 1, part, lane);
}

}  // namespace kiln::gpu

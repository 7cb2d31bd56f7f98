#pragma once
#include "kiln/backend/hip/kernels/attention/attention.hpp"

namespace kiln::gpu {

/// What a block works on: `Units` units of 64 queries, each of one head, that share keys, `Keys` of them a step.
template <int Units, int Keys, bool Causal> struct attention_units {
  static constexpr int rows = attention_memory::unit;
  const attention_sizes& s;
  int batch, kv_head, first_unit, units_of_head;

  /// Tile `n` of those of all groups. In causal attention the last tiles have the most keys, so that they come first in
  /// each section; a section's keys and values fit the last cache.
  KILN_FN attention_units(const attention_sizes& s, int n) : s(s), units_of_head((s.queries + rows - 1) / rows) {
    const int of_section = s.section * s.tiles, section = n / of_section, place = n - section * of_section,
              left = s.groups - section * s.section, width = left < s.section ? left : s.section;
    const int tile = s.tiles - 1 - place / width, group = section * s.section + place % width,
              kv_heads = s.heads / s.group;
    batch = group / kv_heads, kv_head = group - batch * kv_heads, first_unit = tile * Units;
  }
  /// Head (of those that share keys) and first query of a unit; where there is none, the head is `s.group` or more.
  KILN_FN attention_row first_row(int unit) const {
    const int at = first_unit + unit, head = at / units_of_head;
    return {head, (at - head * units_of_head) * rows};
  }
  /// How many keys a query sees.
  KILN_FN int keys_of(int query) const {
    if constexpr (!Causal) return s.keys;
    const int end = (query < s.queries ? query : s.queries - 1) + 1 + s.keys - s.queries;
    return end < 0 ? 0 : end < s.keys ? end : s.keys;
  }
  /// Steps whose keys some query sees, those from the first key on.
  KILN_FN int steps() const {
    int end = 0;
    KILN_UNROLL
    for (int u = 0; u < Units; ++u) {
      const attention_row first = first_row(u);
      const int of_unit = first.head < s.group ? keys_of(first.query + rows - 1) : 0;
      end = of_unit > end ? of_unit : end;
    }
    return (end + Keys - 1) / Keys;
  }
};

/// The tiles of block `block` of `blocks`, one after the other: where `counter` is null one of each round of them,
/// which goes through the blocks forwards and backwards in turns, so that none has the longest tile of each; else
/// whichever is next.
struct tile_order {
  int* counter;
  int block, blocks, rounds = 0;
  KILN_FN int first() const { return block; }
  KILN_FN int next() {
    if (counter) return blocks + atomic_add(counter, 1);
    ++rounds;
    return rounds * blocks + (rounds % 2 ? blocks - 1 - block : block);
  }
};

}  // namespace kiln::gpu

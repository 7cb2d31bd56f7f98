#pragma once
#include "kiln/backend/hip/kernels/attention/attention_mma.hpp"
#include "kiln/backend/hip/kernels/attention/block_rows.hpp"

namespace kiln::gpu {

/// The queries of a row of the table, whose keys and values are in blocks.
template <class T, class Tile, int Rows, int Threads, int Positions>
struct attention_block_of_table : attention_block<T, Tile, Rows, Threads> {
  using block = attention_block<T, Tile, Rows, Threads>;
  block_rows<T, Positions> keys_at, values_at;
  KILN_FN attention_block_of_table(const attention_operand<const T>& q, const attention_operand<const T>& k,
                                   const attention_operand<const T>& v, const attention_sizes& s,
                                   const attention_place& at, const block_table& table, const i64* row)
      : block(q, k, v, s, at),
        keys_at(k, table, row, this->kv_head, s.depth, table.keys),
        values_at(v, table, row, this->kv_head, s.value_depth, table.values) {}
  KILN_FN void copy_keys(T* to_keys, T* to_values, int j0, int end) const {
    copy_rows<Tile::depth, Tile::vector, Threads, Tile::keys>(to_keys, end - j0, this->s.depth, this->keys,
                                                              [&](int r) { return keys_at.at(j0 + r); });
    copy_rows<Tile::value_depth, Tile::vector, Threads, Tile::keys>(
        to_values, end - j0, this->s.value_depth, this->values, [&](int r) { return values_at.at(j0 + r); });
  }
};

/// Attention over blocks: groups are rows of the table times key heads, and of the splits as many work as the keys
/// are worth. A row's heads that share keys, times its tokens, are rows of one tile.
template <class T, class Tile, int Positions>
KILN_FN void attention_over_blocks(const attention_operand<const T>& q, const attention_operand<const T>& k,
                                   const attention_operand<const T>& v, const attention_operand<T>& out,
                                   const block_table& table, attention_sizes s, char* shared) {
  constexpr int threads = Tile::warps * 32, rows = Tile::warps * Tile::atoms_m * 16;
  static_assert(Tile::parts == 1);
  const attention_place at(s);
  const int kv_heads = s.heads / s.group, kv_head = at.group % kv_heads;
  i64* row = table.rows + at.group / kv_heads * table.width;
  s.queries = static_cast<int>(row[block_table::tokens]);
  if (s.queries == 0) return;
  const int position = static_cast<int>(row[block_table::position]), split = at.split;
  s.keys = position + s.queries;
  const int low = table.window > 0 && position >= table.window ? position - table.window + 1 : 0;
  const int steps = (s.keys - low + Tile::keys - 1) / Tile::keys, worth = (steps + 1) / 2;
  const int launched = s.splits;
  s.splits = worth < launched ? worth : launched;
  if (split >= s.splits) return;
  // each group has room for all splits that were launched, where split_sums counts those that work
  s.partial += static_cast<i64>(at.group) * (launched - s.splits) * split_floats(rows, Tile::value_depth);
  // counters of a row, one a head, where split_sums counts one for each group
  s.arrivals = reinterpret_cast<int*>(row + block_table::counters) + kv_head - at.group;
  const int begin = low + steps * split / s.splits * Tile::keys,
            next = low + steps * (split + 1) / s.splits * Tile::keys;
  attention_operand<const T> queries = q;
  queries.base += row[block_table::first] * q.row, queries.batch = 0;
  attention_operand<T> results = out;
  results.base += row[block_table::first] * out.row, results.batch = 0;
  const attention_block_of_table<T, Tile, rows, threads, Positions> block(queries, k, v, s, at, table, row);
  attend_in_registers<T, Tile, mask_kind::none, true>(block, results, {}, s, 0, split,
                                                      {begin, next < s.keys ? next : s.keys}, table.window, shared);
  if (split == 0) {
    block.keys_at.template keep<threads>(0, s.queries);
    block.values_at.template keep<threads>(0, s.queries);
  }
}

}  // namespace kiln::gpu

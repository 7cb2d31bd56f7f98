#pragma once
#include "kiln/backend/hip/kernels/attention/arguments.hpp"
#include "kiln/backend/hip/kernels/platform/platform.hpp"

namespace kiln::gpu {

/// Where keys or values of one head are: those before the run in blocks of `Positions`, those of the run's tokens in
/// the operand.
template <class T, int Positions> struct block_rows {
  const i64* blocks;  ///< of the table's row
  const T* operand;   ///< where position 0 would be in the operand
  i64 step;
  i64 from;  ///< bytes from a block's begin to the head's
  int position, past, depth;
  KILN_FN block_rows(const attention_operand<const T>& of, const block_table& table, const i64* row, int head,
                     int depth, i64 from)
      : blocks(row + table.head),
        operand(of.base + head * of.head + (row[block_table::first] - row[block_table::position]) * of.row),
        step(of.row),
        from(from + static_cast<i64>(head) * Positions * depth * static_cast<i64>(sizeof(T))),
        position(static_cast<int>(row[block_table::position])),
        past(static_cast<int>(row[block_table::past])),
        depth(depth) {}
  KILN_FN T* kept(int key) const {
    char* const begin = reinterpret_cast<char*>(blocks[key / Positions]);
    return reinterpret_cast<T*>(begin + from) + key % Positions * depth;
  }
  KILN_FN const T* at(int key) const { return key < past ? kept(key) : operand + key * step; }
  /// Writes the rows of tokens [begin, end) to their blocks.
  template <int Threads> KILN_FN void keep(int begin, int end) const {
    for (int i = begin * depth + thread_index(); i < end * depth; i += Threads)
      kept(position + i / depth)[i % depth] = at(position + i / depth)[i % depth];
  }
};

}  // namespace kiln::gpu

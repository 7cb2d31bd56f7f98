#pragma once
#include "kiln/backend/hip/kernels/attention/arguments.hpp"
#include "kiln/backend/hip/kernels/platform/platform.hpp"

namespace kiln::gpu {

/// Where keys or values of one head are: those before the run in blocks of `Positions`, those of the run's tokens in
/// the operand.
template <class T, int Positions> struct block_rows {
  const i64 *row, *blocks;  ///< of the table
  const T* operand;         ///< the head's first one of the run
  i64 step;
  i64 from;  ///< bytes from a block's begin to the head's
  int depth;
  KILN_FN block_rows(const attention_operand<const T>& of, const block_table& table, const i64* row, int head,
                     int depth, i64 from)
      : row(row),
        blocks(row + table.head),
        operand(of.base + head * of.head),
        step(of.row),
        from(from + static_cast<i64>(head) * Positions * depth * static_cast<i64>(sizeof(T))),
        depth(depth) {}
  KILN_FN T* kept(int position) const {
    char* const begin = reinterpret_cast<char*>(blocks[position / Positions]);
    return reinterpret_cast<T*>(begin + from) + position % Positions * depth;
  }
  KILN_FN const T* at(int position) const {
    if (position < static_cast<int>(row[block_table::past])) return kept(position);
    return operand + (row[block_table::first] + position - row[block_table::position]) * step;
  }
  /// Writes the rows of tokens [begin, end) to their blocks.
  template <int Threads> KILN_FN void keep(int begin, int end) const {
    const int first = static_cast<int>(row[block_table::position]);
    for (int i = begin * depth + thread_index(); i < end * depth; i += Threads)
      kept(first + i / depth)[i % depth] = at(first + i / depth)[i % depth];
  }
};

}  // namespace kiln::gpu

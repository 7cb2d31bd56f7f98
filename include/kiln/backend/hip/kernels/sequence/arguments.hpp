#pragma once
#include "kiln/backend/hip/kernels/platform/storage_types.hpp"

// Numbers that kernels of recurrences are passed; host and device include this header (see gemm/arguments.hpp).

namespace kiln::gpu {

struct recurrent_sizes {
  i64 steps, batch, hidden;
  i64 step;  ///< the one that this launch makes
  double clip, alpha[3], beta[3];
};
/// Values that `cell_step` keeps for each unit of each batch entry: two hidden states that take turns, the cell's
/// state, the update gate and the reset state.
inline constexpr int cell_states = 5;
/// Units that a block of `cell_step` works, and threads for each.
inline constexpr int cell_units = 32, cell_threads = 8;

/// Batch entries that one cluster of `recur_in_cluster` works.
inline constexpr int cluster_entries = 8;
/// How the blocks of a cluster divide a recurrence. A block holds the recurrence matrix for some units; groups of
/// warps take 16 of them each, and the warps of a group a part of the depth each.
struct cluster_shape {
  int gates, hidden, blocks, splits;
  constexpr int units() const { return hidden / blocks; }
  constexpr int groups() const { return units() / 16; }
  constexpr int threads() const { return groups() * splits * 32; }
  /// Depths of 16 that a warp takes.
  constexpr int deep() const { return hidden / 16 / splits; }
  /// Products of 16 by 8 by 16 that a warp makes a step, each of a factor in four registers.
  constexpr int products() const { return gates * deep(); }
  /// Elements from entry to entry, so that lanes' reads and writes meet different banks: of the state in shared memory,
  /// and of partial sums.
  constexpr int state_step() const { return hidden + 8; }
  constexpr int partial_step() const { return units() + 4; }
  /// Two states, what the block's units become, and partial sums.
  constexpr int shared_bytes() const {
    return cluster_entries * (4 * state_step() + 2 * units() + 4 * splits * gates * partial_step());
  }
};

/// How the blocks of a cluster divide a recurrence whose values have `value_bytes` (`recur_with_held_matrix`): a thread
/// has one column of the recurrence matrix, of a gate and a unit, and a part of its depth.
struct held_shape {
  static constexpr int run = 4;  ///< depths that are read at a time
  int gates, hidden, blocks, entries, parts, value_bytes;
  bool resets_first;     ///< a gated unit whose reset comes before the product
  int held_bytes = 256;  ///< of a thread's registers for the matrix

  constexpr int units() const { return rounded_up((hidden + blocks - 1) / blocks, run); }
  constexpr int lines() const { return rounded_up(gates * units(), 32); }
  constexpr int threads() const { return lines() * parts; }
  /// Depths of a thread, and how many of these it holds in registers.
  constexpr int deep() const { return rounded_up((hidden + parts - 1) / parts, run); }
  constexpr int held() const {
    const int most = held_bytes / value_bytes;
    return deep() < most ? deep() : most;
  }
  /// Values from entry to entry of a state.
  constexpr int wide() const { return parts * deep() > blocks * units() ? parts * deep() : blocks * units(); }
  /// States, what the block's units become, partial sums, and the matrix as far as registers don't hold it.
  constexpr int shared_bytes() const {
    return value_bytes *
           (entries * ((resets_first ? 3 : 2) * wide() + units() + parts * lines()) + threads() * (deep() - held()));
  }

 private:
  static constexpr int rounded_up(int n, int to) { return (n + to - 1) / to * to; }
};

struct linear_attention_sizes {
  i64 steps, heads, own_heads, depth, width;
  double scale;
};

/// Fourier transforms along the middle of [outer, from or to, inner, parts or made].
struct fourier_sizes {
  i64 from, to;                ///< extents of operand and result
  i64 inner;                   ///< transforms beside one another
  i64 parts, made;             ///< of a number, in operand and result
  i64 length, given, is_half;  ///< as in `detail::fourier_signal`
};

}  // namespace kiln::gpu

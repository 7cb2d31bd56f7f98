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

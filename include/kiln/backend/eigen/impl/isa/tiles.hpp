#pragma once
#include "kiln/backend/eigen/isa.hpp"
#include "kiln/kernel/pointwise/block_steps.hpp"
#include "kiln/op/ops.hpp"

namespace kiln::eigen {

/// Ops whose float tiles one translation unit compiles.
inline constexpr std::size_t tiles_in_unit = 24;

/// The machine's `find_loop`; defined in loops.ipp.
kernels::row_run find_row_loop(const kernels::block_step* program, const kernels::block_advance* moves,
                               std::size_t count);

/// What one unit compiles of the ops from number `Unit * tiles_in_unit` on; `op` counts from there.
template <std::size_t Unit> struct tile_unit {
  static tile_function tile(std::size_t op);
  static fold_function fold(std::size_t op);
  static const kernels::pointwise_steps* block_steps(std::size_t op);
  static const kernels::fold_steps* block_folds(std::size_t op);
};

}  // namespace kiln::eigen

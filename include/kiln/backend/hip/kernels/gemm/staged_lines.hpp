#pragma once
#include "kiln/backend/hip/kernels/gemm/arguments.hpp"

// How a block of `skinny_gemm_staged` divides shared memory; host and device include this header.

namespace kiln::gpu {

/// Slots of a warp, each with a line of 128 bytes of as many weight rows as `tiles` tiles of 16 have, then
/// `scale_words` words of scales for each of them; after all warps' slots the sums of two tiles of columns, of
/// `height` rows.
struct staged_lines {
  static constexpr int line = 128, tile = 16;
  int tiles, warps, slots, height, scale_words = 0;
  /// Columns that a block works at a time, a weight row each.
  constexpr int cols() const { return tiles * tile; }
  constexpr int slot_bytes() const { return cols() * (line + scale_words * 4); }
  /// Where the sums begin, in bytes, and how many floats those of one tile of columns are.
  constexpr int sums_at() const { return warps * slots * slot_bytes(); }
  constexpr int sums() const { return warps * height * few_rows_step(cols()); }
  /// Of a block's whole shared memory.
  constexpr int bytes() const { return sums_at() + 2 * sums() * static_cast<int>(sizeof(float)); }
};

/// The first of the columns of block `block` of `blocks`, which share `cols` of them evenly in runs of `run`.
constexpr int first_column(int cols, int run, int block, int blocks) {
  const i64 runs = (cols + run - 1) / run, at = runs * block / blocks * run;
  return at < cols ? static_cast<int>(at) : cols;
}

}  // namespace kiln::gpu

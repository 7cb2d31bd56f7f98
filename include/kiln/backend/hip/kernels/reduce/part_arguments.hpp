#pragma once
#include "kiln/backend/hip/kernels/platform/storage_types.hpp"

// Numbers that kernels which select from parts of rows are passed; host and device include this header (see
// gemm/arguments.hpp).

namespace kiln::gpu {

/// Rows [outer, extent, inner] of which `count` elements are selected: of a row's `entries`, elements or those in
/// scratch memory from number `from` on, a block reads a part of `part`; runs of `count` entries go to number `to` on.
struct part_sizes {
  i64 extent, inner, count;
  i64 entries, parts, part, from, to;
};

}  // namespace kiln::gpu

#pragma once
#include <algorithm>

#include "kiln/backend/hip/kernels/reduce/arguments.hpp"

namespace kiln::hip {

/// Entries of the two halves of a topk's scratch memory: merges read one and write the other, tiles write the first. An
/// odd run is padded when it is merged, so later runs may have more entries together than earlier ones.
struct topk_halves {
  gpu::i64 first = 0, second = 0;
  constexpr topk_halves(gpu::topk_sizes n, gpu::i64 rows) : first(rows * n.runs * n.length) {
    for (bool to_second = true; n.runs > 1; to_second = !to_second) {
      n.runs = (n.runs + 1) / 2, n.length = std::min(2 * n.length, n.count);
      gpu::i64& half = to_second ? second : first;
      half = std::max(half, rows * n.runs * n.length);
    }
  }
};

}  // namespace kiln::hip

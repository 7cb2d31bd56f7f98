#pragma once
#include <algorithm>
#include <vector>

#include "kiln/backend/hip/impl/index/index_call.hpp"
#include "kiln/backend/hip/kernels/reduce/part_arguments.hpp"

namespace kiln::hip {

/// The calls of a topk, and bytes of their scratch memory.
std::vector<index_call> topk_calls(const operation& op, std::span<const tensor> in, std::span<const tensor> out);
std::size_t topk_room(const operation& op, std::span<const tensor> in, std::span<const tensor> out);

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

/// How few best elements of long rows are selected: `levels` of parts of rows, of which the last one has a part a row;
/// none where rows are too short or too many are wanted. Of `rows` neighboring rows a block works a part at once.
struct selection_plan {
  static constexpr gpu::i64 shared_bytes = 32768, fewest_blocks = 1024, least_part = 4096;
  int kept = 1;     ///< best entries that a block has of each row: a power of two
  int room = 0;     ///< entries of each row for which it has shared memory
  int rows = 1;     ///< neighboring rows of which it works a part at once, on the first level
  int lanes = 256;  ///< its threads
  /// A launch: what its blocks read and write, and how many there are.
  struct level {
    gpu::part_sizes sizes;
    gpu::i64 blocks;
  };
  std::vector<level> levels;  ///< in order; each selects from what the one before kept
  gpu::i64 entries = 0;       ///< of scratch memory

  /// Rows [outer, extent, inner], of each `count` elements, by entries of so many bytes.
  selection_plan(gpu::i64 outer, gpu::i64 extent, gpu::i64 inner, gpu::i64 count, gpu::i64 entry_bytes) {
    const gpu::i64 most = shared_bytes / entry_bytes;
    if (outer * inner * count == 0) return;
    while (kept < count && 4 * kept <= most) kept *= 2;
    if (4 * kept > most) return;
    room = std::max(64, 4 * kept);
    constexpr int side_by_side = 8;
    if (inner >= side_by_side && side_by_side * room <= most) rows = side_by_side;
    lanes = std::clamp(room * rows / 4, 256, 1024);
    if (extent <= room) return;
    const auto over = [](gpu::i64 a, gpu::i64 b) { return (a + b - 1) / b; };
    gpu::part_sizes n{extent, inner, count, extent, 1, extent, 0, 0};
    gpu::i64 blocks = outer * over(inner, rows), halves[2] = {0, 0};
    for (int half = 0;; half ^= 1) {
      const gpu::i64 each = std::max<gpu::i64>(least_part, 4 * room);
      const gpu::i64 wanted = n.entries <= 2 * each ? 1 : std::min(over(n.entries, each), over(fewest_blocks, blocks));
      n.part = over(n.entries, wanted), n.parts = over(n.entries, n.part);
      levels.push_back({n, blocks * n.parts});
      if (n.parts == 1) break;
      n.entries = n.parts * count;
      blocks = outer * inner;
      halves[half] = std::max(halves[half], blocks * n.entries);
    }
    for (std::size_t k = 1; k < levels.size(); ++k) {
      levels[k - 1].sizes.to = k % 2 == 1 ? 0 : halves[0];
      levels[k].sizes.from = levels[k - 1].sizes.to;
    }
    entries = halves[0] + halves[1];
  }
};

}  // namespace kiln::hip

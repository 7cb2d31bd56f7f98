#pragma once
#include <algorithm>
#include <optional>

#include "kiln/backend/hip/architecture.hpp"
#include "kiln/backend/hip/kernels/sequence/arguments.hpp"

// How the blocks of a cluster divide a recurrence that one launch makes.

namespace kiln::hip {

/// Blocks that a cluster has on every device that has clusters, and what some devices run.
inline constexpr int blocks_everywhere = 8, blocks_at_most = 16;

/// The fewest blocks, of `most_blocks`, whose registers hold the recurrence matrix as factors, with few enough for a
/// warp that a step is short; empty where a cluster does not hold it.
inline std::optional<gpu::cluster_shape> cluster_for(int gates, std::int64_t hidden, const architecture& where,
                                                     int most_blocks = blocks_at_most) {
  constexpr int most_warps = 16, wanted = 16, most = 24;
  if (hidden % 16 != 0 || hidden < 1 || hidden > 4096) return std::nullopt;
  const int depths = static_cast<int>(hidden) / 16;
  for (const int products : {wanted, most})
    for (int blocks = 1; blocks <= most_blocks; blocks *= 2) {
      gpu::cluster_shape s{gates, static_cast<int>(hidden), blocks, 1};
      if (depths % blocks != 0 || s.groups() > most_warps) continue;
      for (int n = 2; n <= depths && s.groups() * n <= most_warps; ++n)
        if (depths % n == 0) s.splits = n;
      if (s.products() <= products && static_cast<std::size_t>(s.shared_bytes()) <= where.shared_bytes) return s;
    }
  return std::nullopt;
}

/// The fewest blocks that hold the matrix so that a step is short, else the most that hold it at all; `most_blocks`
/// form a cluster where there are clusters. Entries of a batch are divided among clusters as long as these fill no more
/// than the device.
inline std::optional<gpu::held_shape> held_for(int gates, std::int64_t hidden, std::int64_t batch, int value_bytes,
                                               bool resets_first, const architecture& where,
                                               int most_blocks = blocks_at_most) {
  constexpr int most_threads = 512, wanted = 32, most_entries = 8;
  if (where.matrices != matrix_unit::wgmma) most_blocks = 1;
  if (hidden < 1 || hidden > 4096) return std::nullopt;
  std::optional<gpu::held_shape> last;
  for (int blocks = 1; blocks <= most_blocks; blocks *= 2) {
    gpu::held_shape s{gates, static_cast<int>(hidden), blocks, 1, 1, value_bytes, resets_first};
    if (s.lines() > most_threads) continue;
    s.parts = std::min(most_threads / s.lines(), std::max(1, s.hidden / gpu::held_shape::run));
    while (s.entries < most_entries && (batch + s.entries - 1) / s.entries * blocks * 2 > where.multiprocessors)
      s.entries *= 2;
    while (s.entries > 1 && static_cast<std::size_t>(s.shared_bytes()) > where.shared_bytes) s.entries /= 2;
    if (static_cast<std::size_t>(s.shared_bytes()) > where.shared_bytes) continue;
    last = s;
    if (s.deep() <= wanted) break;
  }
  return last;
}

}  // namespace kiln::hip

#pragma once
#include <algorithm>

#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/kernel/norm/lrn_block.hpp"

namespace kiln::kernels {

/// Local response normalization in NCHW or NHWC.
inline void local_response_norm(thread_pool& pool, const lrn_problem& p) {
  const lrn_block part(p);
  const bool last = p.x_step != 0;
  constexpr std::int64_t lanes = native_lanes<float>;
  // NCHW: channels are cut into pieces for all threads, as long as possible
  const std::int64_t piece = round_up(ceil_div(p.pixels, ceil_div(2 * pool.size(), p.batch)), 4 * lanes);
  const std::int64_t each =
      last ? std::max<std::int64_t>(1, 4096 / p.channels) : std::min(piece, lrn_block::vectors_at_once * lanes);
  const std::int64_t tasks = ceil_div(p.pixels, each);
  pool.parallel_for(p.batch * tasks, [&](std::int64_t task, unsigned) {
    const std::int64_t image = task / tasks, first = task % tasks * each, count = std::min(each, p.pixels - first);
    if (!last) {
      const std::int64_t at = image * p.channels * p.pixels + first;
      return part.of_planes(p.x + at, p.pixels, p.y + at, p.pixels, count);
    }
    for (std::int64_t i = image * p.pixels + first; i < image * p.pixels + first + count; ++i)
      part.of_channels(p.x + i * p.x_step, p.y + i * p.y_step);
  });
}

}  // namespace kiln::kernels

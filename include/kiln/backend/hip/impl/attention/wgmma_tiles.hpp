#pragma once
#include <algorithm>
#include <cmath>
#include <optional>

#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/kernels/attention/arguments.hpp"
#include "kiln/backend/hip/lower.hpp"

// Attention whose operands the copy unit of sm_90 reads (kernels/attention/attention_wgmma.hpp): how it reads them, and
// how many rows a block works.

namespace kiln::hip {

inline int rounded_up(std::int64_t n, int to) { return static_cast<int>((n + to - 1) / to * to); }

/// How the copy unit reads heads of 16-bit floats, [batch, heads, rows, depth], in boxes of `lines` rows; empty where
/// it can't.
inline std::optional<tensor_boxes> boxes_of_heads(const tensor& x, int lines) {
  constexpr std::int64_t width = 2, piece = 8, most_step = std::int64_t{1} << 39, most_extent = std::int64_t{1} << 31;
  constexpr std::size_t aligned = 16;
  if (size_of(x.type) != width || x.strides[3] != 1 || alignment_of(x.data) < aligned) return std::nullopt;
  for (const std::int64_t n : x.lens)
    if (n <= 0 || n >= most_extent) return std::nullopt;
  tensor_boxes to;
  to.bfloat16 = x.type == dtype::bf16, to.rank = 4, to.across = static_cast<unsigned>(lines);
  for (std::size_t d = 0; d < 4; ++d) to.extents[d] = static_cast<std::uint64_t>(x.lens[3 - d]);
  for (std::size_t d = 0; d < 3; ++d) {
    const bool one = x.lens[2 - d] == 1;
    if (!one && (x.strides[2 - d] <= 0 || x.strides[2 - d] >= most_step || x.strides[2 - d] % piece != 0))
      return std::nullopt;
    to.step_bytes[d] = static_cast<std::uint64_t>((one ? piece : x.strides[2 - d]) * width);
  }
  return to;
}

/// A block's rows: `groups` of four warps, a unit each, and the keys of a step.
struct wgmma_tiles {
  static constexpr int copying_threads = 128;
  int groups = 1, keys = 128;

  /// Of queries [batch, heads, queries, depth] that `kv_heads` share, for heads as deep as `deep` of `all_keys` keys.
  wgmma_tiles(const ints& q, std::int64_t kv_heads, std::int64_t all_keys, int deep, bool causal, bool masked,
              const architecture& where) {
    // how fast blocks are beside those of the most groups, on an H200. Four groups have a few registers each. In causal
    // attention they have fewer tiles to begin and to end, but some of them wait while only the last ones see keys:
    // that pays where queries see few keys in the mean
    constexpr std::int64_t few_keys = 384;
    struct kind {
      int groups, keys;
      double rate;
    };
    const bool four = deep <= 64 && !masked && (!causal || all_keys - q[2] / 2 <= few_keys);
    double best = 0;
    for (const kind& one : {kind{4, 64, 1}, kind{2, 128, four ? 0.9 : 1}, kind{1, 128, four ? 0.63 : 0.7}}) {
      if (one.groups == 4 && !four) continue;
      const double tiles =
          static_cast<double>(q[0] * kv_heads * count(q, kv_heads, one.groups)) / where.multiprocessors;
      const double time = (causal ? std::max(tiles, 1.0) : std::ceil(tiles)) * one.groups / one.rate;
      if (best == 0 || time < best) best = time, groups = one.groups, keys = one.keys;
    }
  }
  /// Tiles of such rows for one key head.
  static std::int64_t count(const ints& q, std::int64_t kv_heads, int groups) {
    constexpr std::int64_t unit = gpu::attention_memory::unit;
    return (q[1] / kv_heads * ((q[2] + unit - 1) / unit) + groups - 1) / groups;
  }
  /// Key heads whose tiles are worked together: as many as have keys and values for half of the last cache.
  static int section(std::span<const tensor> in, bool causal) {
    constexpr std::int64_t cache_bytes = std::int64_t{24} << 20;
    const tensor &k = in[1], &v = in[2];
    const std::int64_t bytes = k.lens[2] * (k.lens[3] + v.lens[3]) * 2;
    return static_cast<int>(
        causal ? std::clamp<std::int64_t>(cache_bytes / std::max<std::int64_t>(bytes, 1), 1, k.lens[0] * k.lens[1])
               : 1);
  }
};

}  // namespace kiln::hip

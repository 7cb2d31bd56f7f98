#pragma once
#include "kiln/backend/hip/kernels/attention/attention.hpp"
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/core/math/exp.hpp"

namespace kiln::gpu {

/// Attention of any depth and any float: a block of 256 threads works one query, its keys 256 at a time with a running
/// softmax. `Each` times 256 is at least the values' depth.
template <class T, mask_kind Mask, bool Causal, int Each>
KILN_FN void attention_plain(const attention_operand<const T>& q, const attention_operand<const T>& k,
                             const attention_operand<const T>& v, const attention_operand<T>& out,
                             const epilogue_operand& mask, const attention_sizes& s) {
  using V = decltype(value_of(T{}));
  constexpr int threads = 256;
  KILN_SHARED V weights[threads];
  KILN_SHARED V shared[threads / 32];
  const V hidden = -elementary::infinity<V>();
  const int t = thread_index(), query = block_x() % s.queries, rest = block_x() / s.queries;
  const int head = rest % s.heads, batch = rest / s.heads;
  const T* const row = q.base + batch * q.batch + head * q.head + query * q.row;
  const T* const keys = k.base + batch * k.batch + head / s.group * k.head;
  const T* const values = v.base + batch * v.batch + head / s.group * v.head;
  const i64 masked = batch * mask.step[0] + head * mask.step[1] + query * mask.step[2];
  int end = s.keys;
  if constexpr (Causal) end = clamp_count(query + 1 + s.keys - s.queries, s.keys);
  V sums[Each] = {}, top = hidden, total = V(0);
  for (int first = 0; first < end; first += threads) {
    const int key = first + t, count = end - first < threads ? end - first : threads;
    V score = hidden;
    if (key < end) {
      score = V(0);
      for (int d = 0; d < s.depth; ++d) score += value_of(row[d]) * value_of(keys[key * k.row + d]);
      score *= static_cast<V>(s.scale);
      const i64 at = masked + key * mask.step[3];
      if constexpr (Mask == mask_kind::keeps) score = static_cast<const bool*>(mask.base)[at] ? score : hidden;
      if constexpr (Mask == mask_kind::adds) score = rounded<T>(score + value_of(static_cast<const T*>(mask.base)[at]));
    }
    const V best = join_lanes<threads>(score, shared, [](V a, V b) { return a > b || a != a ? a : b; });
    const V above = best > top || best != best ? best : top;
    if (above == hidden) continue;
    const V kept = kiln::exp(top - above), weight = kiln::exp(score - above);
    weights[t] = weight;
    total = total * kept + join_lanes<threads>(weight, shared, [](V a, V b) { return a + b; });
    top = above;
    sync_block();
    KILN_UNROLL
    for (int e = 0; e < Each; ++e) {
      const int d = t + e * threads;
      sums[e] *= kept;
      if (d < s.value_depth)
        for (int j = 0; j < count; ++j) sums[e] += weights[j] * value_of(values[(first + j) * v.row + d]);
    }
    sync_block();
  }
  T* const to = out.base + batch * out.batch + head * out.head + query * out.row;
  KILN_UNROLL
  for (int e = 0; e < Each; ++e) {
    const int d = t + e * threads;
    if (d < s.value_depth) to[d] = stored<T>(total == V(0) ? V(0) : sums[e] / total);
  }
}

}  // namespace kiln::gpu

#pragma once
#include "kiln/backend/hip/kernels/attention/attention.hpp"
#include "kiln/backend/hip/kernels/attention/block_rows.hpp"
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/core/math/exp.hpp"
#include "kiln/core/math/hyperbolic.hpp"

namespace kiln::gpu {

/// One query's result, by a block of 256 threads that takes its keys [begin, end) 256 at a time with a running softmax.
/// `key` and `value` give a key's rows, `masked` what its product becomes; `top` and `total` are what the softmax
/// begins with. `Each` times 256 is at least the values' depth.
template <class T, int Each, class V, class Keys, class Values, class Masked>
KILN_FN void attend_plain(const T* query, int begin, int end, int depth, int value_depth, V top, V total, Keys key,
                          Values value, Masked masked, T* to) {
  constexpr int threads = 256;
  KILN_SHARED V weights[threads];
  KILN_SHARED V shared[threads / 32];
  const V hidden = -elementary::infinity<V>();
  const int t = thread_index();
  V sums[Each] = {};
  for (int first = begin; first < end; first += threads) {
    const int count = end - first < threads ? end - first : threads;
    V score = hidden;
    if (t < count) {
      const T* const row = key(first + t);
      score = V(0);
      for (int d = 0; d < depth; ++d) score += value_of(query[d]) * value_of(row[d]);
      score = masked(score, first + t);
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
      if (d < value_depth)
        for (int j = 0; j < count; ++j) sums[e] += weights[j] * value_of(value(first + j)[d]);
    }
    sync_block();
  }
  KILN_UNROLL
  for (int e = 0; e < Each; ++e) {
    const int d = t + e * threads;
    if (d < value_depth) to[d] = stored<T>(total == V(0) ? V(0) : sums[e] / total);
  }
}

/// Attention of any depth and any float: a block works one query.
template <class T, mask_kind Mask, bool Causal, int Each>
KILN_FN void attention_plain(const attention_operand<const T>& q, const attention_operand<const T>& k,
                             const attention_operand<const T>& v, const attention_operand<T>& out,
                             const epilogue_operand& mask, const attention_sizes& s) {
  using V = decltype(value_of(T{}));
  const V hidden = -elementary::infinity<V>();
  const int query = block_x() % s.queries, rest = block_x() / s.queries;
  const int head = rest % s.heads, batch = rest / s.heads;
  const T* const keys = k.base + batch * k.batch + head / s.group * k.head;
  const T* const values = v.base + batch * v.batch + head / s.group * v.head;
  const i64 row = batch * mask.step[0] + head * mask.step[1] + query * mask.step[2];
  int end = s.keys;
  if constexpr (Causal) end = clamp_count(query + 1 + s.keys - s.queries, s.keys);
  const auto masked = [&](V score, int key) {
    score *= static_cast<V>(s.scale);
    const i64 at = row + key * mask.step[3];
    if constexpr (Mask == mask_kind::keeps) score = static_cast<const bool*>(mask.base)[at] ? score : hidden;
    if constexpr (Mask == mask_kind::adds) score = rounded<T>(score + value_of(static_cast<const T*>(mask.base)[at]));
    return score;
  };
  attend_plain<T, Each>(
      q.base + batch * q.batch + head * q.head + query * q.row, 0, end, s.depth, s.value_depth, hidden, V(0),
      [&](int key) { return keys + key * k.row; }, [&](int key) { return values + key * v.row; }, masked,
      out.base + batch * out.batch + head * out.head + query * out.row);
}

/// The same of sequences in blocks, with bounded scores and sinks: block_x counts tokens of a row of the table, of
/// which there are `s.tiles`, then heads, then rows.
template <class T, int Positions, int Each>
KILN_FN void attention_plain_over_blocks(const attention_operand<const T>& q, const attention_operand<const T>& k,
                                         const attention_operand<const T>& v, const attention_operand<T>& out,
                                         const block_table& table, const attention_sizes& s) {
  const int token = block_x() % s.tiles, rest = block_x() / s.tiles, head = rest % s.heads;
  const i64* const row = table.rows + rest / s.heads * table.width;
  if (token >= static_cast<int>(row[block_table::tokens])) return;
  const block_rows<T, Positions> keys(k, table, row, head / s.group, s.depth, table.keys);
  const block_rows<T, Positions> values(v, table, row, head / s.group, s.value_depth, table.values);
  const int own = static_cast<int>(row[block_table::position]) + token;
  const int low = table.window > 0 && own >= table.window ? own - table.window + 1 : 0;
  const i64 at = row[block_table::first] + token;
  const float top = table.sinks ? table.sinks[head * table.sink_step] : -elementary::infinity<float>();
  const auto masked = [&](float score, int) {
    score *= s.scale;
    return table.softcap > 0 ? table.softcap * kiln::tanh(score / table.softcap) : score;
  };
  attend_plain<T, Each>(
      q.base + head * q.head + at * q.row, low, own + 1, s.depth, s.value_depth, top, table.sinks ? 1.0f : 0.0f,
      [&](int key) { return keys.at(key); }, [&](int key) { return values.at(key); }, masked,
      out.base + head * out.head + at * out.row);
  if (head % s.group != 0) return;
  keys.template keep<256>(token, token + 1);
  values.template keep<256>(token, token + 1);
}

}  // namespace kiln::gpu

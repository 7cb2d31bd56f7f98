#pragma once
#include "kiln/backend/hip/kernels/attention/split_keys.hpp"

namespace kiln::gpu {

/// Threads of `attention_simt` that share rows: each works every 16th key, then every 16th run of four values.
inline constexpr int vector_lanes = 16;

/// A thread's part of a block of attention on the vector unit: `Tile::atoms_m` rows, of which 16 neighboring threads
/// hold scores and sums. Both products read four elements along their depth at once, so that a thread's loads are far
/// fewer than its multiplications; weights pass through memory that its 16 threads alone use.
template <class T, class Tile> struct vector_rows {
  static constexpr int count = Tile::atoms_m, threads = Tile::warps * warp_lanes, rows = threads / vector_lanes * count;
  static constexpr int tile_keys = Tile::keys, keys = tile_keys / vector_lanes,
                       runs = Tile::value_depth / (4 * vector_lanes);
  static constexpr attention_memory memory{rows, Tile::keys, Tile::depth, Tile::value_depth, sizeof(T)};
  static constexpr int step_k = memory.step_k(), step_v = memory.step_v(), step_w = memory.step_s();
  static_assert(Tile::keys % vector_lanes == 0 && Tile::value_depth % (4 * vector_lanes) == 0 && Tile::depth % 4 == 0);
  using block = attention_block<T, Tile, rows, threads>;
  using run = pack<T, 4>;

  int lane, row;  ///< among the 16; first row in the tile
  T *tile_q, *tile_k, *tile_v;
  float* weights;  ///< of the thread's rows
  attention_row at[count];
  float scores[count][keys];  ///< of a step
  float top[count], total[count], sums[count][runs][4];

  KILN_FN vector_rows(const block& b, char* shared)
      : lane(thread_index() % vector_lanes), row(thread_index() / vector_lanes * count), sums{} {
    tile_q = reinterpret_cast<T*>(shared);
    tile_k = reinterpret_cast<T*>(shared + memory.keys_at());
    tile_v = reinterpret_cast<T*>(shared + memory.values_at());
    weights = reinterpret_cast<float*>(shared + memory.vector_weights_at()) + row * step_w;
    KILN_UNROLL
    for (int r = 0; r < count; ++r) {
      const int own = b.row0 + row + r;
      at[r] = row_of(b.s, b.kv_head, own < b.all_rows ? own : b.all_rows - 1);
      top[r] = hidden_score, total[r] = 0;
    }
  }

  KILN_FN void multiply_keys() {
    KILN_UNROLL
    for (int r = 0; r < count; ++r) KILN_UNROLL
    for (int n = 0; n < keys; ++n) scores[r][n] = 0;
    KILN_NO_UNROLL
    for (int d = 0; d < Tile::depth; d += 4) {
      run q[count], k[keys];
      KILN_UNROLL
      for (int r = 0; r < count; ++r) q[r] = *reinterpret_cast<const run*>(tile_q + (row + r) * step_k + d);
      KILN_UNROLL
      for (int n = 0; n < keys; ++n)
        k[n] = *reinterpret_cast<const run*>(tile_k + (lane + n * vector_lanes) * step_k + d);
      KILN_UNROLL
      for (int e = 0; e < 4; ++e) KILN_UNROLL
      for (int r = 0; r < count; ++r) KILN_UNROLL
      for (int n = 0; n < keys; ++n) scores[r][n] = KILN_LIBM(fmaf)(widen(q[r].at[e]), widen(k[n].at[e]), scores[r][n]);
    }
  }
  /// Turns the scores of the keys from `j0` on, of which those before `end` exist, into weights.
  template <mask_kind Mask, bool Causal>
  KILN_FN void weigh(const block& b, const epilogue_operand& mask, int j0, int end) {
    const attention_sizes& s = b.s;
    KILN_UNROLL
    for (int r = 0; r < count; ++r) {
      const i64 line = b.batch * mask.step[0] + at[r].head * mask.step[1] + at[r].query * mask.step[2];
      float high = hidden_score;
      KILN_UNROLL
      for (int n = 0; n < keys; ++n) {
        const int j = j0 + lane + n * vector_lanes;
        const bool seen = j < end && (!Causal || j <= at[r].query + s.keys - s.queries);
        float& x = scores[r][n];
        x = seen ? masked_score<T, Mask>(x, s, mask, line + j * mask.step[3]) : hidden_score;
        high = greater_or_nan(x, high);
      }
      for (int x = 1; x < vector_lanes; x *= 2) high = greater_or_nan(shuffle_xor(high, x), high);
      if (top[r] > high || top[r] != top[r]) high = top[r];
      const float base = high == hidden_score ? 0 : high, by = exp2_device(top[r] - base);
      top[r] = high;
      total[r] *= by;
      KILN_UNROLL
      for (int n = 0; n < keys; ++n) {
        const float weight = exp2_device(scores[r][n] - base);
        weights[r * step_w + lane + n * vector_lanes] = weight;
        total[r] += weight;
      }
      KILN_UNROLL
      for (int c = 0; c < runs; ++c) KILN_UNROLL
      for (int i = 0; i < 4; ++i) sums[r][c][i] *= by;
    }
  }
  KILN_FN void multiply_values() {
    KILN_NO_UNROLL
    for (int j = 0; j < Tile::keys; j += 4) {
      pack<float, 4> w[count];
      KILN_UNROLL
      for (int r = 0; r < count; ++r) w[r] = *reinterpret_cast<const pack<float, 4>*>(weights + r * step_w + j);
      KILN_UNROLL
      for (int e = 0; e < 4; ++e) KILN_UNROLL
      for (int c = 0; c < runs; ++c) {
        const run v = *reinterpret_cast<const run*>(tile_v + (j + e) * step_v + (c * vector_lanes + lane) * 4);
        KILN_UNROLL
        for (int r = 0; r < count; ++r) KILN_UNROLL
        for (int i = 0; i < 4; ++i) sums[r][c][i] = KILN_LIBM(fmaf)(w[r].at[e], widen(v.at[i]), sums[r][c][i]);
      }
    }
  }
  KILN_FN void join_totals() {
    KILN_UNROLL
    for (int r = 0; r < count; ++r)
      for (int x = 1; x < vector_lanes; x *= 2) total[r] += shuffle_xor(total[r], x);
  }
  /// Leaves the rows that exist as `split_sums` reads them.
  KILN_FN void leave(const block& b, float* own) const {
    KILN_UNROLL
    for (int r = 0; r < count; ++r) {
      if (row + r >= b.rows()) continue;
      float* const to = own + (row + r) * split_row(Tile::value_depth);
      if (lane == 0) to[0] = top[r], to[1] = total[r];
      KILN_UNROLL
      for (int c = 0; c < runs; ++c) KILN_UNROLL
      for (int i = 0; i < 4; ++i) to[2 + (c * vector_lanes + lane) * 4 + i] = sums[r][c][i];
    }
  }
  KILN_FN void store(const block& b, const attention_operand<T>& out) const {
    KILN_UNROLL
    for (int r = 0; r < count; ++r) {
      if (b.row0 + row + r >= b.all_rows) continue;
      T* const to = out.base + b.batch * out.batch + at[r].head * out.head + at[r].query * out.row;
      const float by = total[r] == 0 ? 0 : 1 / total[r];
      KILN_UNROLL
      for (int c = 0; c < runs; ++c) {
        const int d = (c * vector_lanes + lane) * 4;
        run made;
        KILN_UNROLL
        for (int i = 0; i < 4; ++i) made.at[i] = narrow<T>(sums[r][c][i] * by);
        if (Tile::vector >= 4 && d + 4 <= b.s.value_depth) {
          *reinterpret_cast<run*>(to + d) = made;
        } else {
          KILN_UNROLL
          for (int i = 0; i < 4; ++i)
            if (d + i < b.s.value_depth) to[d + i] = made.at[i];
        }
      }
    }
  }
};

/// Attention by multiply and add, for elements that no matrix unit multiplies as they are. See `attention_place` for
/// its blocks.
template <class T, class Tile, mask_kind Mask, bool Causal>
KILN_FN void attention_simt(const attention_operand<const T>& q, const attention_operand<const T>& k,
                            const attention_operand<const T>& v, const attention_operand<T>& out,
                            const epilogue_operand& mask, const attention_sizes& s, char* shared) {
  using rows = vector_rows<T, Tile>;
  const attention_place at(s);
  const typename rows::block block(q, k, v, s, at);
  const key_range range = block.template seen_keys<Causal>(at.split);
  rows own(block, shared);
  // of this warp's rows any
  const bool exists = thread_index() / warp_lanes * (warp_lanes / vector_lanes) * rows::count < block.rows();
  attend_in_steps<Mask, Causal>(block, own, mask, range, exists);
  own.join_totals();
  if (s.splits == 1) return own.store(block, out);
  const split_sums<T, Tile, rows::rows, rows::threads> splits{block, s, at.tile};
  own.leave(block, splits.of_split(at.split));
  sync_block();  // the queries' memory is used again
  splits.join_splits(out, shared);
}

}  // namespace kiln::gpu

#pragma once
#include "kiln/backend/hip/kernels/attention/attention.hpp"

namespace kiln::gpu {

/// A warp's part of a block whose scores pass through shared memory between the two products of attention, so that any
/// atom serves.
template <class Atom, class Tile> struct staged_warp {
  using T = typename Atom::element;
  static constexpr int atoms_m = Tile::atoms_m, warp_rows = atoms_m * Atom::m, rows = Tile::warps * warp_rows;
  static constexpr int tile_keys = Tile::keys, value_atoms = Tile::value_depth / Atom::n;
  static constexpr attention_memory memory{rows, Tile::keys, Tile::depth, Tile::value_depth, sizeof(T)};
  static constexpr int step_k = memory.step_k(), step_v = memory.step_v(), step_p = memory.step_p(),
                       step_s = memory.step_s();
  using block = attention_block<T, Tile, rows, Tile::warps * warp_lanes>;

  int lane, row;  ///< of the warp in the tile
  T *tile_q, *tile_k, *tile_v, *weights;
  float *scores, *top, *total, *shrink;
  typename Atom::accumulator sums[atoms_m][value_atoms] = {};

  KILN_FN explicit staged_warp(char* shared) : lane(lane_index()), row(thread_index() / warp_lanes * warp_rows) {
    tile_q = reinterpret_cast<T*>(shared);
    tile_k = reinterpret_cast<T*>(shared + memory.keys_at()),
    tile_v = reinterpret_cast<T*>(shared + memory.values_at());
    weights = reinterpret_cast<T*>(shared + memory.weights_at()) + row * step_p;
    scores = reinterpret_cast<float*>(shared + memory.scores_at()) + row * step_s;
    top = reinterpret_cast<float*>(shared + memory.row_values_at()) + row;
    total = top + rows, shrink = total + rows;
    for (int r = lane; r < warp_rows; r += warp_lanes) top[r] = hidden_score, total[r] = 0;
  }

  /// Stores the scores of the tile's keys.
  KILN_FN void multiply_keys() const {
    KILN_NO_UNROLL
    for (int m = 0; m < atoms_m; ++m) KILN_NO_UNROLL
    for (int n = 0; n < Tile::keys; n += Atom::n) {
      typename Atom::accumulator score = {};
      KILN_NO_UNROLL
      for (int d = 0; d < Tile::depth; d += Atom::k) {
        typename Atom::factor_a fq;
        typename Atom::factor_b fk;
        Atom::template load_a<true>(fq, tile_q + (row + m * Atom::m) * step_k + d, step_k);
        Atom::template load_b<true>(fk, tile_k + n * step_k + d, step_k);
        Atom::multiply(score, fq, fk);
      }
      KILN_UNROLL
      for (int i = 0; i < Atom::c_count; ++i) {
        const place p = Atom::c_at(lane, i);
        scores[(m * Atom::m + p.row) * step_s + n + p.depth] = score.at[i];
      }
    }
  }
  /// Turns the scores of the keys from `j0` on, of which those before `end` exist, into weights.
  template <mask_kind Mask, bool Causal>
  KILN_FN void weigh(const block& b, const epilogue_operand& mask, int j0, int end) const {
    const attention_sizes& s = b.s;
    KILN_NO_UNROLL
    for (int r = 0; r < warp_rows; ++r) {
      int own = b.row0 + row + r;
      own = own < b.all_rows ? own : b.all_rows - 1;
      const attention_row at = row_of(s, b.kv_head, own);
      float high = hidden_score, sum = 0;
      for (int c = lane; c < Tile::keys; c += warp_lanes) {
        const int j = j0 + c;
        const bool seen = j < end && (!Causal || j <= at.query + s.keys - s.queries);
        float& x = scores[r * step_s + c];
        x = seen ? masked_score<T, Mask>(
                       x, s, mask,
                       b.batch * mask.step[0] + at.head * mask.step[1] + at.query * mask.step[2] + j * mask.step[3])
                 : hidden_score;
        high = greater_or_nan(x, high);
      }
      for (int x = 1; x < warp_lanes; x *= 2) {
        high = greater_or_nan(shuffle_xor(high, x), high);
      }
      const float old = top[r];
      if (old > high || old != old) high = old;
      const float base = high == hidden_score ? 0 : high;
      for (int c = lane; c < Tile::keys; c += warp_lanes) {
        const float x = exp2_device(scores[r * step_s + c] - base);
        weights[r * step_p + c] = narrow<T>(x);
        sum += x;
      }
      for (int x = 1; x < warp_lanes; x *= 2) sum += shuffle_xor(sum, x);
      const float by = exp2_device(old - base);
      sync_warp();
      if (lane == 0) top[r] = high, total[r] = total[r] * by + sum, shrink[r] = by;
    }
  }
  KILN_FN void multiply_values() {
    KILN_UNROLL
    for (int m = 0; m < atoms_m; ++m) {
      KILN_UNROLL
      for (int n = 0; n < value_atoms; ++n) KILN_UNROLL
      for (int i = 0; i < Atom::c_count; ++i) sums[m][n].at[i] *= shrink[m * Atom::m + Atom::c_at(lane, i).row];
      KILN_NO_UNROLL
      for (int j = 0; j < Tile::keys; j += Atom::k) {
        typename Atom::factor_a fp;
        Atom::template load_a<true>(fp, weights + m * Atom::m * step_p + j, step_p);
        KILN_UNROLL
        for (int n = 0; n < value_atoms; ++n) {
          typename Atom::factor_b fv;
          Atom::template load_b<false>(fv, tile_v + j * step_v + n * Atom::n, step_v);
          Atom::multiply(sums[m][n], fp, fv);
        }
      }
    }
  }
  KILN_FN void store(const block& b, const attention_operand<T>& out) const {
    KILN_UNROLL
    for (int m = 0; m < atoms_m; ++m) KILN_UNROLL
    for (int n = 0; n < value_atoms; ++n) KILN_UNROLL
    for (int i = 0; i < Atom::c_count; ++i) {
      const place p = Atom::c_at(lane, i);
      const int r = m * Atom::m + p.row, d = n * Atom::n + p.depth, own = b.row0 + row + r;
      if (own >= b.all_rows || d >= b.s.value_depth) continue;
      const attention_row at = row_of(b.s, b.kv_head, own);
      out.base[b.batch * out.batch + at.head * out.head + at.query * out.row + d] =
          narrow<T>(total[r] == 0 ? 0 : sums[m][n].at[i] / total[r]);
    }
  }
};

/// Attention over any atom. See `attention_place` for its blocks.
template <class Atom, class Tile, mask_kind Mask, bool Causal>
KILN_FN void attention_staged(const attention_operand<const typename Atom::element>& q,
                              const attention_operand<const typename Atom::element>& k,
                              const attention_operand<const typename Atom::element>& v,
                              const attention_operand<typename Atom::element>& out, const epilogue_operand& mask,
                              const attention_sizes& s, char* shared) {
  using warp = staged_warp<Atom, Tile>;
  const typename warp::block block(q, k, v, s, attention_place(s));
  warp own(shared);
  attend_in_steps<Mask, Causal>(block, own, mask, block.template seen_keys<Causal>(0), own.row < block.rows());
  own.store(block, out);
}

}  // namespace kiln::gpu

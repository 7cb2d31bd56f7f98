#pragma once
#include "kiln/backend/hip/kernels/attention.hpp"

namespace kiln::device {

/// Shared memory of `attention_staged`, in bytes from its start.
template <class Atom, class Tile>
struct staged_memory {
  using T = typename Atom::element;
  static constexpr int warp_rows = Tile::atoms_m * Atom::m, rows = Tile::warps * warp_rows;
  static constexpr int step_k = Tile::depth + tile_pad<T>, step_v = Tile::value_depth + tile_pad<T>;
  static constexpr int step_p = Tile::keys + tile_pad<T>, step_s = Tile::keys + 4;
  static constexpr int size = static_cast<int>(sizeof(T));
  static constexpr int k = rows * step_k * size, v = k + Tile::keys * step_k * size;
  static constexpr int weights = v + Tile::keys * step_v * size, scores = weights + rows * step_p * size;
  static constexpr int row_values = scores + rows * step_s * 4, bytes = row_values + rows * 3 * 4;
};

/// Attention whose scores pass through shared memory between its two products, so that any atom serves. block_x counts
/// tiles, block_y batch entries times key heads.
template <class Atom, class Tile, mask_kind Mask, bool Causal>
KILN_FN void attention_staged(const attention_operand<const typename Atom::element>& q,
                              const attention_operand<const typename Atom::element>& k,
                              const attention_operand<const typename Atom::element>& v,
                              const attention_operand<typename Atom::element>& out, const tail_operand& mask,
                              const attention_sizes& s, char* shared) {
  using T = typename Atom::element;
  using memory = staged_memory<Atom, Tile>;
  constexpr int threads = Tile::warps * warp_lanes, atoms_m = Tile::atoms_m, value_atoms = Tile::value_depth / Atom::n;
  const int kv_heads = s.heads / s.group, batch = block_y() / kv_heads, kv = block_y() % kv_heads;
  const int row0 = (s.tiles - 1 - block_x()) * memory::rows, all_rows = s.group * s.queries;
  const int lane = lane_index(), warp = thread_index() / warp_lanes, warp_row = warp * memory::warp_rows;
  const key_range range =
      keys_of_tile<Causal>(s, row0, row0 + memory::rows < all_rows ? memory::rows : all_rows - row0, 0, Tile::keys);
  T* tile_q = reinterpret_cast<T*>(shared);
  T *tile_k = reinterpret_cast<T*>(shared + memory::k), *tile_v = reinterpret_cast<T*>(shared + memory::v);
  T* weights = reinterpret_cast<T*>(shared + memory::weights) + warp_row * memory::step_p;
  float* scores = reinterpret_cast<float*>(shared + memory::scores) + warp_row * memory::step_s;
  float* top = reinterpret_cast<float*>(shared + memory::row_values) + warp_row;
  float *total = top + memory::rows, *shrink = total + memory::rows;
  const T* q_base = q.base + batch * q.batch;
  const T* k_base = k.base + batch * k.batch + kv * k.head;
  const T* v_base = v.base + batch * v.batch + kv * v.head;

  copy_rows<Tile::depth, Tile::vector, threads, memory::rows>(tile_q, all_rows - row0, s.depth, q_base, [&](int r) {
    const attention_row at = row_of(s, kv, row0 + r);
    return q_base + at.head * q.head + at.query * q.row;
  });
  for (int r = lane; r < memory::warp_rows; r += warp_lanes) top[r] = hidden_score, total[r] = 0;
  typename Atom::accumulator sums[atoms_m][value_atoms] = {};

  for (int j0 = range.begin; j0 < range.end; j0 += Tile::keys) {
    sync_block();
    copy_rows<Tile::depth, Tile::vector, threads, Tile::keys>(tile_k, range.end - j0, s.depth, k_base,
                                                              [&](int r) { return k_base + (j0 + r) * k.row; });
    copy_rows<Tile::value_depth, Tile::vector, threads, Tile::keys>(tile_v, range.end - j0, s.value_depth, v_base,
                                                                    [&](int r) { return v_base + (j0 + r) * v.row; });
    copy_commit();
    copy_wait<0>();
    sync_block();
    KILN_NO_UNROLL
    for (int m = 0; m < atoms_m; ++m) KILN_NO_UNROLL
    for (int n = 0; n < Tile::keys; n += Atom::n) {
      typename Atom::accumulator score = {};
      KILN_NO_UNROLL
      for (int d = 0; d < Tile::depth; d += Atom::k) {
        typename Atom::factor_a fq;
        typename Atom::factor_b fk;
        Atom::template load_a<true>(fq, tile_q + (warp_row + m * Atom::m) * memory::step_k + d, memory::step_k);
        Atom::template load_b<true>(fk, tile_k + n * memory::step_k + d, memory::step_k);
        Atom::multiply(score, fq, fk);
      }
      KILN_UNROLL
      for (int i = 0; i < Atom::c_count; ++i) {
        const place p = Atom::c_at(lane, i);
        scores[(m * Atom::m + p.row) * memory::step_s + n + p.depth] = score.at[i];
      }
    }
    sync_warp();
    KILN_NO_UNROLL
    for (int r = 0; r < memory::warp_rows; ++r) {
      int row = row0 + warp_row + r;
      row = row < all_rows ? row : all_rows - 1;
      const attention_row at = row_of(s, kv, row);
      float high = hidden_score, sum = 0;
      for (int c = lane; c < Tile::keys; c += warp_lanes) {
        const int j = j0 + c;
        const bool seen = j < range.end && (!Causal || j <= at.query + s.keys - s.queries);
        float& x = scores[r * memory::step_s + c];
        x = seen ? masked_score<T, Mask>(
                       x, s, mask,
                       batch * mask.step[0] + at.head * mask.step[1] + at.query * mask.step[2] + j * mask.step[3])
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
        const float x = exp2_device(scores[r * memory::step_s + c] - base);
        weights[r * memory::step_p + c] = narrow<T>(x);
        sum += x;
      }
      for (int x = 1; x < warp_lanes; x *= 2) sum += shuffle_xor(sum, x);
      const float by = exp2_device(old - base);
      sync_warp();
      if (lane == 0) top[r] = high, total[r] = total[r] * by + sum, shrink[r] = by;
    }
    sync_warp();
    KILN_UNROLL
    for (int m = 0; m < atoms_m; ++m) {
      KILN_UNROLL
      for (int n = 0; n < value_atoms; ++n) KILN_UNROLL
      for (int i = 0; i < Atom::c_count; ++i) sums[m][n].at[i] *= shrink[m * Atom::m + Atom::c_at(lane, i).row];
      KILN_NO_UNROLL
      for (int j = 0; j < Tile::keys; j += Atom::k) {
        typename Atom::factor_a fp;
        Atom::template load_a<true>(fp, weights + m * Atom::m * memory::step_p + j, memory::step_p);
        KILN_UNROLL
        for (int n = 0; n < value_atoms; ++n) {
          typename Atom::factor_b fv;
          Atom::template load_b<false>(fv, tile_v + j * memory::step_v + n * Atom::n, memory::step_v);
          Atom::multiply(sums[m][n], fp, fv);
        }
      }
    }
  }
  copy_commit();
  copy_wait<0>();
  KILN_UNROLL
  for (int m = 0; m < atoms_m; ++m) KILN_UNROLL
  for (int n = 0; n < value_atoms; ++n) KILN_UNROLL
  for (int i = 0; i < Atom::c_count; ++i) {
    const place p = Atom::c_at(lane, i);
    const int r = m * Atom::m + p.row, d = n * Atom::n + p.depth, row = row0 + warp_row + r;
    if (row >= all_rows || d >= s.value_depth) continue;
    const attention_row at = row_of(s, kv, row);
    out.base[batch * out.batch + at.head * out.head + at.query * out.row + d] =
        narrow<T>(total[r] == 0 ? 0 : sums[m][n].at[i] / total[r]);
  }
}

}  // namespace kiln::device

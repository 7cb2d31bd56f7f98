#pragma once
#include "kiln/backend/hip/kernels/softmax_rows.hpp"

namespace kiln::device {

/// Bytes of shared memory that `attention_in_registers` needs.
template <class T, class Tile>
struct attention_memory {
  static constexpr int rows = Tile::warps * Tile::atoms_m * 16;
  static constexpr int step_k = Tile::depth + tile_pad<T>, step_v = Tile::value_depth + tile_pad<T>;
  static constexpr int staged_row = step_k > step_v ? step_k : step_v;
  static constexpr int stage = Tile::keys * (step_k + step_v);
  static constexpr int bytes = (rows * staged_row + 2 * stage) * static_cast<int>(sizeof(T));
};

/// Attention of which a warp keeps scores and sums in registers: what mma.sync sums lies as what it multiplies. block_x
/// counts tiles times splits, block_y batch entries times key heads.
template <class T, class Tile, mask_kind Mask, bool Causal>
KILN_FN void attention_in_registers(const attention_operand<const T>& q, const attention_operand<const T>& k,
                                    const attention_operand<const T>& v, const attention_operand<T>& out,
                                    const tail_operand& mask, const attention_sizes& s, char* shared) {
  using atom = atom_mma<T>;
  using memory = attention_memory<T, Tile>;
  constexpr int threads = Tile::warps * 32, rows = memory::rows, atoms_m = Tile::atoms_m;
  constexpr int key_atoms = Tile::keys / 16, depth_atoms = Tile::depth / 16, value_atoms = Tile::value_depth / 16;
  const int kv_heads = s.heads / s.group, batch = block_y() / kv_heads, kv = block_y() % kv_heads;
  const int split = block_x() % s.splits, tile = s.tiles - 1 - block_x() / s.splits;  // causal: the longest first
  const int row0 = tile * rows, all_rows = s.group * s.queries;
  const int lane = lane_index(), warp = thread_index() / 32, warp_row = warp * atoms_m * 16;
  const key_range range =
      keys_of_tile<Causal>(s, row0, row0 + rows < all_rows ? rows : all_rows - row0, split, Tile::keys);
  T* tile_q = reinterpret_cast<T*>(shared);
  const auto stage_k = [&](int i) { return tile_q + rows * memory::staged_row + i % 2 * memory::stage; };
  const auto stage_v = [&](int i) { return stage_k(i) + Tile::keys * memory::step_k; };
  const T* k_base = k.base + batch * k.batch + kv * k.head;
  const T* v_base = v.base + batch * v.batch + kv * v.head;
  const T* q_base = q.base + batch * q.batch;
  const auto copy_keys = [&](int i) {
    const int j0 = range.begin + i * Tile::keys;
    copy_rows<Tile::depth, Tile::vector, threads, Tile::keys>(stage_k(i), range.end - j0, s.depth, k_base,
                                                              [&](int r) { return k_base + (j0 + r) * k.row; });
    copy_rows<Tile::value_depth, Tile::vector, threads, Tile::keys>(stage_v(i), range.end - j0, s.value_depth, v_base,
                                                                    [&](int r) { return v_base + (j0 + r) * v.row; });
  };

  copy_rows<Tile::depth, Tile::vector, threads, rows>(tile_q, all_rows - row0, s.depth, q_base, [&](int r) {
    const attention_row at = row_of(s, kv, row0 + r);
    return q_base + at.head * q.head + at.query * q.row;
  });
  const int steps = (range.end - range.begin + Tile::keys - 1) / Tile::keys;
  if (steps > 0) copy_keys(0);
  copy_commit();

  softmax_rows<T, atoms_m> softmax(s, kv, row0 + warp_row, all_rows);
  typename atom::accumulator sums[atoms_m][value_atoms] = {};
  typename atom::factor_a fq[atoms_m][depth_atoms];

  for (int i = 0; i < steps; ++i) {
    copy_wait<0>();
    sync_block();
    if (i == 0) {
      KILN_UNROLL
      for (int m = 0; m < atoms_m; ++m) KILN_UNROLL
      for (int d = 0; d < depth_atoms; ++d)
        atom::template load_a<true>(fq[m][d], tile_q + (warp_row + m * 16) * memory::step_k + d * 16, memory::step_k);
    }
    if (i + 1 < steps) copy_keys(i + 1);
    copy_commit();
    const T *tile_k = stage_k(i), *tile_v = stage_v(i);
    typename atom::accumulator scores[atoms_m][key_atoms] = {};
    KILN_UNROLL
    for (int d = 0; d < depth_atoms; ++d) KILN_UNROLL
    for (int n = 0; n < key_atoms; ++n) {
      typename atom::factor_b fk;
      atom::template load_b<true>(fk, tile_k + n * 16 * memory::step_k + d * 16, memory::step_k);
      KILN_UNROLL
      for (int m = 0; m < atoms_m; ++m) atom::multiply(scores[m][n], fq[m][d], fk);
    }

    float shrink[2 * atoms_m];
    softmax.template weigh<Mask, Causal>(scores, shrink, s, mask, batch, range.begin + i * Tile::keys, range.end);
    KILN_UNROLL
    for (int r = 0; r < 2 * atoms_m; ++r) KILN_UNROLL
    for (int n = 0; n < value_atoms; ++n) KILN_UNROLL
    for (int e = 0; e < 4; ++e) softmax.score(sums, r, n, e) *= shrink[r];
    KILN_UNROLL
    for (int n = 0; n < key_atoms; ++n) {
      typename atom::factor_a fp[atoms_m], rest[atoms_m];
      KILN_UNROLL
      for (int m = 0; m < atoms_m; ++m) {
        atom::as_factor(fp[m], scores[m][n]);
        if constexpr (Tile::few) atom::as_rest(rest[m], scores[m][n], fp[m]);
      }
      KILN_UNROLL
      for (int d = 0; d < value_atoms; ++d) {
        typename atom::factor_b fv;
        atom::template load_b<false>(fv, tile_v + n * 16 * memory::step_v + d * 16, memory::step_v);
        KILN_UNROLL
        for (int m = 0; m < atoms_m; ++m) {
          atom::multiply(sums[m][d], fp[m], fv);
          if constexpr (Tile::few) atom::multiply(sums[m][d], rest[m], fv);
        }
      }
    }
  }
  softmax.join_totals();
  copy_wait<0>();
  sync_block();

  if (s.splits > 1) {
    // what others need: sums, their base and their total
    const int width = Tile::value_depth + 2;
    const i64 tile_at = static_cast<i64>(block_y()) * s.tiles + tile;
    float* all = s.partial + tile_at * s.splits * rows * width;
    float* own = all + static_cast<i64>(split) * rows * width;
    KILN_UNROLL
    for (int r = 0; r < 2 * atoms_m; ++r) {
      float* to = own + (warp_row + r / 2 * 16 + r % 2 * 8 + lane / 4) * width;
      if (lane % 4 == 0) to[0] = softmax.top[r], to[1] = softmax.total[r];
      KILN_UNROLL
      for (int n = 0; n < value_atoms; ++n) KILN_UNROLL
      for (int e = 0; e < 4; ++e) to[2 + n * 16 + e / 2 * 8 + lane % 4 * 2 + e % 2] = softmax.score(sums, r, n, e);
    }
    fence_device();
    sync_block();
    int* flag = reinterpret_cast<int*>(shared);
    if (thread_index() == 0) *flag = atomic_add(s.arrivals + tile_at, 1) == s.splits - 1;
    sync_block();
    if (!*flag) return;
    fence_device();
    if (thread_index() == 0) s.arrivals[tile_at] = 0;
    const int here = rows < all_rows - row0 ? rows : all_rows - row0;
    // weights[r * splits + p]: what part p counts in row r
    float* weights = reinterpret_cast<float*>(shared) + 4;
    for (int r = thread_index(); r < here; r += threads) {
      const float* from = all + r * width;
      float high = hidden_score, weight = 0;
      for (int p = 0; p < s.splits; ++p) {
        const float x = from[static_cast<i64>(p) * rows * width];
        weights[r * s.splits + p] = x;
        high = x > high || x != x ? x : high;
      }
      for (int p = 0; p < s.splits; ++p) {
        float& x = weights[r * s.splits + p];
        x = x == hidden_score ? 0 : exp2_device(x - high);
        weight += from[static_cast<i64>(p) * rows * width + 1] * x;
      }
      for (int p = 0; p < s.splits; ++p) weights[r * s.splits + p] *= weight == 0 ? 0 : 1 / weight;
    }
    sync_block();
    for (int c = thread_index(); c < here * s.value_depth; c += threads) {
      const int r = c / s.value_depth, d = c % s.value_depth;
      const float* from = all + r * width + 2 + d;
      float sum = 0;
      for (int p = 0; p < s.splits; ++p) sum += from[static_cast<i64>(p) * rows * width] * weights[r * s.splits + p];
      const attention_row at = row_of(s, kv, row0 + r);
      out.base[batch * out.batch + at.head * out.head + at.query * out.row + d] = narrow<T>(sum);
    }
    return;
  }

  // a warp's own rows of the queries' tile stage its results
  softmax.template store<Tile::value_depth, Tile::vector, memory::staged_row>(
      out, s, batch, kv, row0 + warp_row, all_rows, sums, tile_q + warp_row * memory::staged_row);
}

}  // namespace kiln::device

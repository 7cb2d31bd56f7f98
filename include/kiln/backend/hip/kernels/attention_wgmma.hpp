#pragma once
#include "kiln/backend/hip/kernels/softmax_rows.hpp"
#include "kiln/backend/hip/kernels/wgmma.hpp"

namespace kiln::device {

/// Shared memory of `attention_on_wgmma`: the queries, then stages of keys and values, all in blocks of lines of 64
/// elements as wgmma reads them. Two of three stages are being filled while one is multiplied.
template <class T, class Tile>
struct wgmma_attention_memory {
  static_assert(Tile::keys == 64 && Tile::depth % 64 == 0 && Tile::value_depth % 64 == 0 && Tile::vector == 8);
  static constexpr int stages = 3, rows = Tile::warps * 16;
  static constexpr int staged_row = (Tile::depth > Tile::value_depth ? Tile::depth : Tile::value_depth) + tile_pad<T>;
  static constexpr int stage = Tile::keys * (Tile::depth + Tile::value_depth);
  static constexpr int bytes = (stages * stage + rows * staged_row) * static_cast<int>(sizeof(T));
};

#if KILN_NVIDIA
/// Attention on the matrix unit of sm_90 that reads shared memory itself: four warps sum 64 rows, keys and values come
/// from shared memory, queries and weights from registers (Shah et al. 2024). What one group of warps multiplies hides
/// what others compute. block_x counts tiles, block_y batch entries times key heads.
template <class T, class Tile, mask_kind Mask, bool Causal>
KILN_FN void attention_on_wgmma(const attention_operand<const T>& q, const attention_operand<const T>& k,
                                const attention_operand<const T>& v, const attention_operand<T>& out,
                                const tail_operand& mask, const attention_sizes& s, char* shared) {
  using atom = atom_mma<T>;
  using memory = wgmma_attention_memory<T, Tile>;
  constexpr int threads = Tile::warps * 32, rows = memory::rows;
  constexpr int depth_atoms = Tile::depth / 16, value_blocks = Tile::value_depth / 64;
  const int kv_heads = s.heads / s.group, batch = block_y() / kv_heads, kv = block_y() % kv_heads;
  const int row0 = (s.tiles - 1 - block_x()) * rows, all_rows = s.group * s.queries;  // causal: the longest first
  const int warp_row = thread_index() / 32 * 16;
  const key_range range = keys_of_tile<Causal>(s, row0, row0 + rows < all_rows ? rows : all_rows - row0, 0, Tile::keys);
  T* stages = reinterpret_cast<T*>(shared);
  T* tile_q = stages + memory::stages * memory::stage;
  const auto stage_k = [&](int i) { return stages + i % memory::stages * memory::stage; };
  const auto stage_v = [&](int i) { return stage_k(i) + Tile::keys * Tile::depth; };
  const T* q_base = q.base + batch * q.batch;
  const T* k_base = k.base + batch * k.batch + kv * k.head;
  const T* v_base = v.base + batch * v.batch + kv * v.head;
  // keys are the depth of what values are multiplied with; those of scores lie alike
  using rows_of_keys = matrix_operand<T, false, 8>;
  using layout_k = swizzled_layout<T, false, Tile::depth, Tile::keys>;
  using layout_v = swizzled_layout<T, false, Tile::value_depth, Tile::keys>;
  typename rows_of_keys::template cursor<Tile::depth, Tile::keys, threads, layout_k> from_k(
      {k_base, {0, 0}, 1, k.row}, 0, 0, 0, Tile::depth, range.begin, range.end);
  typename rows_of_keys::template cursor<Tile::value_depth, Tile::keys, threads, layout_v> from_v(
      {v_base, {0, 0}, 1, v.row}, 0, 0, 0, Tile::value_depth, range.begin, range.end);
  const int steps = (range.end - range.begin + Tile::keys - 1) / Tile::keys;
  constexpr int step_q = Tile::depth + tile_pad<T>;
  copy_rows<Tile::depth, 8, threads, rows>(tile_q, all_rows - row0, s.depth, q_base, [&](int r) {
    const attention_row at = row_of(s, kv, row0 + r);
    return q_base + at.head * q.head + at.query * q.row;
  });
  const int whole_steps = (range.end - range.begin) / Tile::keys;
  const auto copy_keys = [&](int i) {
    if (i < whole_steps)
      from_k.template copy<true>(stage_k(i)), from_v.template copy<true>(stage_v(i));
    else if (i < steps)
      from_k.copy(stage_k(i)), from_v.copy(stage_v(i));
    copy_commit();
  };
  KILN_UNROLL
  for (int i = 0; i < 2; ++i) copy_keys(i);
  softmax_rows<T, 1> softmax(s, kv, row0 + warp_row, all_rows);
  typename atom::factor_a fq[depth_atoms], fp[4];
  typename atom::accumulator scores[1][4], sums[1][value_blocks * 4] = {};

  for (int i = 0; i < steps; ++i) {
    copy_wait<1>();
    fence_for_wgmma();
    sync_block();
    // the stage was multiplied in the step before, and every warp has waited for that
    copy_keys(i + 2);
    // descriptions count addresses in 16 bytes
    const u64 keys = describe_tile<true>(stage_k(i)), values = describe_tile<false>(stage_v(i));
    // read anew in each round: ptxas 13.0 gives registers to others that only wgmma reads, and loses them for the next
    KILN_UNROLL
    for (int d = 0; d < depth_atoms; ++d)
      atom::template load_a<true>(fq[d], tile_q + warp_row * step_q + d * 16, step_q);
    hold_all(fq);
    wgmma_fence();
    multiply_wgmma_64<T, false, 0>(scores[0], fq[0].at, keys);
    KILN_UNROLL
    for (int d = 1; d < depth_atoms; ++d)
      multiply_wgmma_64<T, true, 0>(scores[0], fq[d].at, keys + (d / 4 * (Tile::keys * 64) + d % 4 * 16) / 8);
    wgmma_commit();
    wgmma_wait<0>();
    hold_all(scores[0]);
    float shrink[2];
    softmax.template weigh<Mask, Causal>(scores, shrink, s, mask, batch, range.begin + i * Tile::keys, range.end);
    if (any_lane(shrink[0] != 1 || shrink[1] != 1)) {
      KILN_UNROLL
      for (int r = 0; r < 2; ++r) KILN_UNROLL
      for (int n = 0; n < value_blocks * 4; ++n) KILN_UNROLL
      for (int e = 0; e < 4; ++e) softmax.score(sums, r, n, e) *= shrink[r];
    }
    KILN_UNROLL
    for (int n = 0; n < 4; ++n) atom::as_factor(fp[n], scores[0][n]);
    hold_all(fp);
    hold_all(sums[0]);
    wgmma_fence();
    KILN_UNROLL
    for (int n = 0; n < 4; ++n) KILN_UNROLL
    for (int b = 0; b < value_blocks; ++b)
      multiply_wgmma_64<T, true, 1>(*reinterpret_cast<typename atom::accumulator(*)[4]>(&sums[0][b * 4]), fp[n].at,
                                    values + (b * (Tile::keys * 64) + n * 16 * 64) / 8);
    wgmma_commit();
    wgmma_wait<0>();
    hold_all(sums[0]);
  }
  softmax.join_totals();
  copy_wait<0>();
  sync_block();
  softmax.template store<Tile::value_depth, 8, memory::staged_row>(out, s, batch, kv, row0 + warp_row, all_rows, sums,
                                                                   tile_q + warp_row * memory::staged_row);
}
#endif

}  // namespace kiln::device

#pragma once
#include "kiln/backend/hip/kernels/atom/wgmma.hpp"
#include "kiln/backend/hip/kernels/attention/softmax_rows.hpp"

#if KILN_NVIDIA
namespace kiln::gpu {

/// Starts scores = queries * keys^T on wgmma; `keys` describes their tile.
template <class T, class Tile>
KILN_FN void start_scores(fragment<float, 8> (&scores)[4], typename atom_mma<T>::factor_a (&fq)[Tile::depth / 16],
                          u64 keys) {
  hold_all(fq);
  wgmma_fence();
  multiply_wgmma_64<T, false, 0>(scores, fq[0].at, keys);
  // descriptions count addresses in 16 bytes
  KILN_UNROLL
  for (int d = 1; d < Tile::depth / 16; ++d)
    multiply_wgmma_64<T, true, 0>(scores, fq[d].at, keys + (d / 4 * (Tile::keys * 64) + d % 4 * 16) / 8);
  wgmma_commit();
}

/// Starts sums += weights * values on wgmma.
template <class T, class Tile>
KILN_FN void start_sums(fragment<float, 8> (&sums)[Tile::value_depth / 16],
                        typename atom_mma<T>::factor_a (&weights)[4], u64 values) {
  hold_all(weights);
  hold_all(sums);
  wgmma_fence();
  KILN_UNROLL
  for (int n = 0; n < 4; ++n) KILN_UNROLL
  for (int b = 0; b < Tile::value_depth / 64; ++b)
    multiply_wgmma_64<T, true, 1>(*reinterpret_cast<fragment<float, 8>(*)[4]>(&sums[b * 4]), weights[n].at,
                                  values + (b * (Tile::keys * 64) + n * 16 * 64) / 8);
  wgmma_commit();
}

/// Attention on the matrix unit of sm_90 that reads shared memory itself: four warps sum 64 rows, keys and values come
/// from shared memory, queries and weights from registers. While the weights of a step are multiplied with its values,
/// the next step's scores become weights (Shah et al. 2024). Warps wait for each other's copies and for stages that
/// others read, never for a step itself. See `attention_place` for its blocks.
template <class T, class Tile, mask_kind Mask, bool Causal>
KILN_FN void attention_on_wgmma(const attention_operand<const T>& q, const attention_operand<const T>& k,
                                const attention_operand<const T>& v, const attention_operand<T>& out,
                                const epilogue_operand& mask, const attention_sizes& s, char* shared) {
  static_assert(Tile::keys == 64 && Tile::depth % 64 == 0 && Tile::value_depth % 64 == 0 && Tile::vector == 8);
  using atom = atom_mma<T>;
  constexpr int threads = Tile::warps * 32, rows = Tile::warps * 16, depth_atoms = Tile::depth / 16;
  constexpr attention_memory memory{rows, Tile::keys, Tile::depth, Tile::value_depth, sizeof(T)};
  constexpr int stages = memory.wgmma_stages, stage = memory.wgmma_stage(), step_q = memory.step_k(),
                staged_row = memory.staged_row();
  const attention_block<T, Tile, rows, threads> block(q, k, v, s, attention_place(s));
  const int warp_row = thread_index() / 32 * 16;
  const key_range range = block.template seen_keys<Causal>(0);
  T* all = reinterpret_cast<T*>(shared);
  T* tile_q = all + stages * stage;
  const auto stage_k = [&](int i) { return all + i % stages * stage; };
  const auto stage_v = [&](int i) { return stage_k(i) + Tile::keys * Tile::depth; };
  // keys are the depth of the product with values; those of scores are stored alike
  using rows_of_keys = matrix_operand<T, false, 8>;
  using layout_k = swizzled_layout<T, false, Tile::depth, Tile::keys>;
  using layout_v = swizzled_layout<T, false, Tile::value_depth, Tile::keys>;
  typename rows_of_keys::template cursor<Tile::depth, Tile::keys, threads, layout_k> from_k(
      {{block.keys, {0, 0}, 1, k.row}}, 0, 0, 0, Tile::depth, range.begin, range.end);
  typename rows_of_keys::template cursor<Tile::value_depth, Tile::keys, threads, layout_v> from_v(
      {{block.values, {0, 0}, 1, v.row}}, 0, 0, 0, Tile::value_depth, range.begin, range.end);
  const int steps = (range.end - range.begin + Tile::keys - 1) / Tile::keys;
  block.copy_queries(tile_q);
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
  softmax_rows<T, 1> softmax(s, block.kv_head, block.row0 + warp_row, block.all_rows);
  typename atom::accumulator scores[1][4], sums[1][Tile::value_depth / 16] = {};
  typename atom::factor_a weights[4];
  u64* const full = reinterpret_cast<u64*>(shared + memory.wgmma_barriers_at());  // copied by all warps
  u64* const read = full + stages;                                                // multiplied by all warps
  if (thread_index() == 0) KILN_UNROLL
  for (int i = 0; i < 2 * stages; ++i) start_barrier(full + i, Tile::warps);
  // other warps read queries than copied them
  copy_wait<1>();
  fence_for_wgmma();
  sync_block();
  const auto arrive = [&](u64* at) {
    sync_warp();
    if (lane_index() == 0) arrive_at(at);
  };
  const auto begin_step = [&](int i) {
    const int next = i + 2;  // into the place of three steps before
    if (next >= stages && next < steps) await_barrier(read + next % stages, next / stages - 1);
    copy_keys(next);
    copy_wait<1>();
    fence_for_wgmma();
    arrive(full + (i + 1) % stages);
    await_barrier(full + i % stages, i / stages);
  };
  const auto start_scores_of = [&](int i) {
    // loaded in each round: ptxas 13.0 reuses registers that only wgmma reads, and loses them for the next round
    typename atom::factor_a fq[depth_atoms];
    KILN_UNROLL
    for (int d = 0; d < depth_atoms; ++d)
      atom::template load_a<true>(fq[d], tile_q + warp_row * step_q + d * 16, step_q);
    start_scores<T, Tile>(scores[0], fq, describe_tile<true>(stage_k(i)));
  };
  const auto take_weights = [&] {
    KILN_UNROLL
    for (int n = 0; n < 4; ++n) atom::as_factor(weights[n], scores[0][n]);
  };
  float shrink[2];
  const auto weigh = [&](int i) {
    hold_all(scores[0]);
    softmax.template weigh<Mask, Causal>(scores, shrink, s, mask, block.batch, range.begin + i * Tile::keys, range.end);
  };
  if (steps > 0) {
    arrive(full);
    begin_step(0);
    start_scores_of(0);
    wgmma_wait<0>();
    weigh(0);
    take_weights();
  }
  KILN_NO_UNROLL
  for (int i = 1; i < steps; ++i) {
    begin_step(i);
    start_scores_of(i);
    start_sums<T, Tile>(sums[0], weights, describe_tile<false>(stage_v(i - 1)));
    wgmma_wait<1>();
    weigh(i);
    wgmma_wait<0>();
    arrive(read + (i - 1) % stages);
    hold_all(sums[0]);
    if (any_lane(shrink[0] != 1 || shrink[1] != 1)) softmax.scale(sums, shrink);
    take_weights();
  }
  if (steps > 0) {
    start_sums<T, Tile>(sums[0], weights, describe_tile<false>(stage_v(steps - 1)));
    wgmma_wait<0>();
    hold_all(sums[0]);
  }
  softmax.join_totals();
  copy_wait<0>();
  sync_block();
  softmax.template store<Tile::value_depth, 8, staged_row>(out, s, block.batch, block.kv_head, block.row0 + warp_row,
                                                           block.all_rows, sums, tile_q + warp_row * staged_row);
}

}  // namespace kiln::gpu
#endif

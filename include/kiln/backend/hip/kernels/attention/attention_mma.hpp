#pragma once
#include "kiln/backend/hip/kernels/attention/softmax_rows.hpp"
#include "kiln/backend/hip/kernels/attention/split_keys.hpp"

namespace kiln::gpu {

/// scores += queries * keys^T for a warp's rows.
template <class T, class Tile>
KILN_FN void multiply_keys(typename atom_mma<T>::accumulator (&scores)[Tile::atoms_m][Tile::keys / 16],
                           const typename atom_mma<T>::factor_a (&queries)[Tile::atoms_m][Tile::depth / 16],
                           const T* tile_k, int step_k) {
  using atom = atom_mma<T>;
  KILN_UNROLL
  for (int d = 0; d < Tile::depth / 16; ++d) KILN_UNROLL
  for (int n = 0; n < Tile::keys / 16; ++n) {
    typename atom::factor_b fk;
    atom::template load_b<true>(fk, tile_k + n * 16 * step_k + d * 16, step_k);
    KILN_UNROLL
    for (int m = 0; m < Tile::atoms_m; ++m) atom::multiply(scores[m][n], queries[m][d], fk);
  }
}

/// sums += weights * values; of few keys with what the weights' rounding drops, too.
template <class T, class Tile>
KILN_FN void multiply_values(typename atom_mma<T>::accumulator (&sums)[Tile::atoms_m][Tile::value_depth / 16],
                             const typename atom_mma<T>::accumulator (&weights)[Tile::atoms_m][Tile::keys / 16],
                             const T* tile_v, int step_v) {
  using atom = atom_mma<T>;
  KILN_UNROLL
  for (int n = 0; n < Tile::keys / 16; ++n) {
    typename atom::factor_a fp[Tile::atoms_m], dropped[Tile::atoms_m];
    KILN_UNROLL
    for (int m = 0; m < Tile::atoms_m; ++m) {
      atom::as_factor(fp[m], weights[m][n]);
      if constexpr (Tile::few) atom::as_dropped(dropped[m], weights[m][n], fp[m]);
    }
    KILN_UNROLL
    for (int d = 0; d < Tile::value_depth / 16; ++d) {
      typename atom::factor_b fv;
      atom::template load_b<false>(fv, tile_v + n * 16 * step_v + d * 16, step_v);
      KILN_UNROLL
      for (int m = 0; m < Tile::atoms_m; ++m) {
        atom::multiply(sums[m][d], fp[m], fv);
        if constexpr (Tile::few) atom::multiply(sums[m][d], dropped[m], fv);
      }
    }
  }
}

/// What a block does with its rows and keys: `block` copies them, this split works the keys of `range`, of which a row
/// sees the last `window` where that is not 0. mma.sync sums in the lanes where it multiplies, so a warp keeps scores
/// and sums in registers. Of few rows reading keys is the work: each warp copies and works steps of its own, which wait
/// for no other warp, and all leave their sums in shared memory (FlashDecoding's parts, Dao et al. 2023, in a block).
template <class T, class Tile, mask_kind Mask, bool Causal, class Block>
KILN_FN void attend_in_registers(const Block& block, const attention_operand<T>& out, const epilogue_operand& mask,
                                 const attention_sizes& s, int tile, int split, key_range range, int window,
                                 char* shared) {
  using atom = atom_mma<T>;
  constexpr int threads = Tile::warps * 32, atoms_m = Tile::atoms_m, parts = Tile::parts,
                rows = Tile::warps / parts * atoms_m * 16;
  static_assert(parts == 1 || parts == Tile::warps);
  constexpr int depth_atoms = Tile::depth / 16, value_atoms = Tile::value_depth / 16;
  constexpr attention_memory memory{rows, Tile::keys, Tile::depth, Tile::value_depth, sizeof(T)};
  constexpr int step_k = memory.step_k(), step_v = memory.step_v(), staged_row = memory.staged_row();
  constexpr int stage = memory.stage(), stages = memory.stages(parts), ahead = stages - 1;
  const int warp = thread_index() / 32, part = warp % parts, warp_row = warp / parts * atoms_m * 16;
  T* tile_q = reinterpret_cast<T*>(shared);
  const auto stage_k = [&](int i) { return tile_q + rows * staged_row + (part * stages + i % stages) * stage; };
  const auto stage_v = [&](int i) { return stage_k(i) + Tile::keys * step_k; };
  const auto first_key = [&](int i) { return range.begin + (i * parts + part) * Tile::keys; };
  const auto copy_keys = [&](int i) { block.copy_keys(stage_k(i), stage_v(i), first_key(i), range.end); };

  block.copy_queries(tile_q);
  copy_commit();
  const int steps = ((range.end - range.begin + Tile::keys - 1) / Tile::keys - part + parts - 1) / parts;
  KILN_UNROLL
  for (int i = 0; i < ahead; ++i) {
    if (i < steps) copy_keys(i);
    copy_commit();
  }

  softmax_rows<T, atoms_m> softmax(s, block.kv_head, block.row0 + warp_row, block.all_rows);
  typename atom::accumulator sums[atoms_m][value_atoms] = {};
  typename atom::factor_a fq[atoms_m][depth_atoms];
  copy_wait<ahead>();
  sync_block();
  KILN_UNROLL
  for (int m = 0; m < atoms_m; ++m) KILN_UNROLL
  for (int d = 0; d < depth_atoms; ++d)
    atom::template load_a<true>(fq[m][d], tile_q + (warp_row + m * 16) * step_k + d * 16, step_k);
  for (int i = 0; i < steps; ++i) {
    copy_wait<ahead - 1>();
    if constexpr (parts > 1) {
      sync_warp();
    } else {
      sync_block();
    }
    if (i + ahead < steps) copy_keys(i + ahead);
    copy_commit();
    if (block.row0 + warp_row >= block.all_rows) continue;  // this warp's rows do not exist
    typename atom::accumulator scores[atoms_m][Tile::keys / 16] = {};
    multiply_keys<T, Tile>(scores, fq, stage_k(i), step_k);
    float shrink[2 * atoms_m];
    softmax.template weigh<Mask, Causal>(scores, shrink, s, mask, block.batch, first_key(i), range.end, window);
    softmax.scale(sums, shrink);
    multiply_values<T, Tile>(sums, scores, stage_v(i), step_v);
  }
  softmax.join_totals();
  copy_wait<0>();
  sync_block();
  const split_sums<T, Tile, rows, threads> splits{block, s, tile};
  if constexpr (parts > 1) {
    float *const left = reinterpret_cast<float*>(shared), *const weights = left + parts * splits.floats;
    splits.leave(softmax, sums, left + part * splits.floats, warp_row);
    sync_block();
    if (s.splits == 1) return splits.join(out, left, parts, weights);
    splits.join(splits.of_split(split), left, parts, weights);
    splits.join_splits(out, shared);
  } else if (s.splits > 1) {
    splits.leave(softmax, sums, splits.of_split(split), warp_row);
    splits.join_splits(out, shared);
  } else {
    // a warp's own rows of the queries' tile stage its results
    softmax.template store<Tile::value_depth, Tile::vector, staged_row>(out, s, block.batch, block.kv_head,
                                                                        block.row0 + warp_row, block.all_rows, sums,
                                                                        tile_q + warp_row * staged_row);
  }
}

/// Attention of keys and values that stand together. See `attention_place` for its blocks.
template <class T, class Tile, mask_kind Mask, bool Causal>
KILN_FN void attention_in_registers(const attention_operand<const T>& q, const attention_operand<const T>& k,
                                    const attention_operand<const T>& v, const attention_operand<T>& out,
                                    const epilogue_operand& mask, const attention_sizes& s, char* shared) {
  constexpr int threads = Tile::warps * 32, rows = Tile::warps / Tile::parts * Tile::atoms_m * 16;
  const attention_place at(s);
  const attention_block<T, Tile, rows, threads> block(q, k, v, s, at);
  attend_in_registers<T, Tile, Mask, Causal>(block, out, mask, s, at.tile, at.split,
                                             block.template seen_keys<Causal>(at.split), 0, shared);
}

}  // namespace kiln::gpu

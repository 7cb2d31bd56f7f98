#pragma once
#include "kiln/backend/hip/kernels/atom/wgmma.hpp"
#include "kiln/backend/hip/kernels/attention/attention_units.hpp"
#include "kiln/backend/hip/kernels/attention/softmax_rows.hpp"
#include "kiln/backend/hip/kernels/platform/ring_counter.hpp"

#if KILN_NVIDIA
namespace kiln::gpu {

/// A number that all lanes of a warp have. Of `Uniform` ones the assembler knows that, since redux writes a warp's own
/// registers, from which wgmma reads what describes its tiles; others are moved there before each of its instructions.
template <bool Uniform> KILN_FN int of_warp(int x) {
  if constexpr (Uniform) return static_cast<int>(__reduce_or_sync(0xffffffffu, static_cast<u32>(x)));
  return x;
}

/// Starts scores = queries * keys^T on wgmma; the two numbers describe their tiles.
template <class T, class Tile>
KILN_FN void start_scores(fragment<float, 8> (&scores)[Tile::keys / 16], u64 queries, u64 keys) {
  auto& all = reinterpret_cast<float(&)[Tile::keys / 2]>(scores);
  wgmma_fence();
  multiply_wgmma<T, 0, 0, false>(all, queries, keys);
  // descriptions count addresses in 16 bytes
  KILN_UNROLL
  for (int d = 1; d < Tile::depth / 16; ++d)
    multiply_wgmma<T, 0, 0>(all, queries + (d / 4 * (attention_memory::unit * 64) + d % 4 * 16) / 8,
                            keys + (d / 4 * (Tile::keys * 64) + d % 4 * 16) / 8);
  wgmma_commit();
}

/// Starts sums += weights * values on wgmma.
template <class T, class Tile>
KILN_FN void start_sums(fragment<float, 8> (&sums)[Tile::value_depth / 16],
                        typename atom_mma<T>::factor_a (&weights)[Tile::keys / 16], u64 values) {
  auto& all = reinterpret_cast<float(&)[Tile::value_depth / 2]>(sums);
  hold_all(weights);
  hold_all(sums);
  wgmma_fence();
  KILN_UNROLL
  for (int n = 0; n < Tile::keys / 16; ++n) multiply_wgmma<T, 1>(all, weights[n].at, values + n * 16 * 64 / 8);
  wgmma_commit();
}

/// Attention on the matrix unit of sm_90 that reads shared memory itself. A thread has the copy unit fetch queries,
/// keys and values, tile after tile, as far ahead as there is room; groups of four warps work a unit of 64 rows each. A
/// group starts the product of a step's scores and that of the weights before with their values, and makes the former
/// weights under the latter (FlashAttention-3, Shah et al. 2024). Of two groups with deep heads in causal attention one
/// starts its products after the other's; of four each passes over steps whose keys none of its rows sees. Steps go
/// from the last keys to the first, so that those which a mask may hide come first. `tile_order` has the tiles of a
/// block.
template <class T, class Tile, mask_kind Mask, bool Causal>
KILN_FN void attention_on_wgmma(const attention_operand<T>& out, const epilogue_operand& mask, const attention_sizes& s,
                                const tensor_map& map_q, const tensor_map& map_k, const tensor_map& map_v,
                                char* shared) {
  using atom = atom_mma<T>;
  constexpr int groups = Tile::warps / 4, unit = attention_memory::unit, threads = 128, keys = Tile::keys,
                value_depth = Tile::value_depth;
  static_assert(groups == 1 || groups == 2 || groups == 4);
  // of those that a block has, a thread of the copying group keeps `few`, the others have `many`
  constexpr int few = groups == 2 ? 40 : 32, many = groups == 2 ? 232 : 112;
  constexpr bool in_turns = groups == 2 && Causal && Tile::depth + value_depth > 128;
  // on an H200 two groups take 1.25 times as long with uniform descriptions, four 0.88 times
  constexpr bool uniform = groups == 4;
  constexpr attention_memory memory{groups * unit, keys, Tile::depth, value_depth, sizeof(T)};
  constexpr int stages = memory.wgmma_stages(), width = memory.wgmma_width();
  using units = attention_units<groups, keys, Causal>;
  const auto stage_q = [&](int i) { return reinterpret_cast<T*>(shared) + i * memory.wgmma_queries(); };
  const auto stage_k = [&](int i) {
    return reinterpret_cast<T*>(shared + memory.wgmma_keys_at()) + i * (keys * width);
  };
  const auto stage_v = [&](int i) {
    return reinterpret_cast<T*>(shared + memory.wgmma_values_at()) + i * (keys * value_depth);
  };
  // copied, and read by all warps
  u64 *const full_q = reinterpret_cast<u64*>(shared + memory.wgmma_barriers_at()), *const read_q = full_q + 2,
             *const full_k = read_q + 2, *const read_k = full_k + stages, *const full_v = read_k + stages,
             *const read_v = full_v + stages;
  int* const tile_here = reinterpret_cast<int*>(read_v + stages);  // -1 after the last
  if (thread_index() == 0) {
    KILN_UNROLL
    for (int i = 0; i < 2; ++i) start_barrier(full_q + i, 1), start_barrier(read_q + i, Tile::warps);
    KILN_UNROLL
    for (int i = 0; i < stages; ++i) {
      start_barrier(full_k + i, 1), start_barrier(read_k + i, Tile::warps);
      start_barrier(full_v + i, 1), start_barrier(read_v + i, Tile::warps);
    }
    fence_barriers();
  }
  sync_block();
  await_last();
  ring_counter<2> at_q;
  ring_counter<stages> stage;
  if (thread_index() < threads) {
    if constexpr (groups > 1) leave_registers<few>();
    if (thread_index() != 0) return;
    tile_order order{s.arrivals, block_x(), blocks_x()};
    const int tiles = s.groups * s.tiles;
    KILN_NO_UNROLL
    for (int n = order.first();; at_q.next()) {
      u64* const arrived = full_q + at_q.place;
      const bool exists = n < tiles;
      if (at_q.round > 0) await_barrier(read_q + at_q.place, at_q.round - 1);
      tile_here[at_q.place] = exists ? n : -1;
      if (!exists) {
        arrive_at(arrived);
        return;
      }
      const units at(s, n);
      n = order.next();
      const int steps = at.steps();
      if (steps == 0) {
        arrive_at(arrived);
        continue;
      }
      arrive_and_expect(arrived, memory.wgmma_queries() * static_cast<int>(sizeof(T)));
      KILN_UNROLL
      for (int u = 0; u < groups; ++u) {
        const attention_row first = at.first_row(u);
        KILN_UNROLL
        for (int d = 0; d < width; d += 64)
          copy_rows_of_head(stage_q(at_q.place) + u * (unit * width) + d * unit, map_q, d, first.query,
                            at.kv_head * s.group + first.head, at.batch, arrived);
      }
      const auto copy_step = [&]<int Depth>(T* to, const tensor_map& map, int i, u64* full, u64* read) {
        if (stage.round > 0) await_barrier(read + stage.place, stage.round - 1);
        arrive_and_expect(full + stage.place, keys * Depth * static_cast<int>(sizeof(T)));
        KILN_UNROLL
        for (int d = 0; d < Depth; d += 64)
          copy_rows_of_head(to + d * keys, map, d, i * keys, at.kv_head, at.batch, full + stage.place);
      };
      KILN_NO_UNROLL
      for (int i = steps - 1; i >= 0; --i, stage.next()) {
        copy_step.template operator()<width>(stage_k(stage.place), map_k, i, full_k, read_k);
        copy_step.template operator()<value_depth>(stage_v(stage.place), map_v, i, full_v, read_v);
      }
    }
  } else {
    if constexpr (groups > 1) take_registers<many>();
    const int warp = thread_index() / 32 - 4, group = warp / 4;
    T* const results = reinterpret_cast<T*>(shared + memory.wgmma_results_at()) + warp * 16 * memory.step_v();
    const auto arrive = [&](u64* at) {
      sync_warp();
      if (lane_index() == 0) arrive_at(at);
    };
    const auto take_turn = [&] {
      if constexpr (in_turns) await_turn<threads>(group);
    };
    const auto end_turn = [&] {
      if constexpr (in_turns) pass_turn<threads>(1 - group);
    };
    if (group == 1) end_turn();
    KILN_NO_UNROLL
    for (;; at_q.next()) {
      await_barrier(full_q + at_q.place, at_q.round);
      // read by the lane that arrives for its warp, before which the tile's number is not written again
      const int n = of_first_lane(lane_index() == 0 ? tile_here[at_q.place] : 0);
      if (n < 0) break;
      const u64 queries =
          describe_tile<true>(stage_q(of_warp<uniform>(at_q.place)) + of_warp<uniform>(group) * (unit * width));
      const units at(s, n);
      const attention_row first = at.first_row(group);
      const bool exists = first.head < s.group;
      const int all_rows = exists ? (first.head + 1) * s.queries : 0,
                row0 = (exists ? first.head * s.queries + first.query : 0) + warp % 4 * 16;
      softmax_rows<T, 1> softmax(s, at.kv_head, row0, exists ? all_rows : 1);
      typename atom::accumulator scores[1][keys / 16], sums[1][value_depth / 16] = {};
      typename atom::factor_a weights[keys / 16];
      float shrink[2];
      const auto take_weights = [&] {
        KILN_UNROLL
        for (int k = 0; k < keys / 16; ++k) atom::as_factor(weights[k], scores[0][k]);
      };
      const auto start_scores_here = [&] {
        await_barrier(full_k + stage.place, stage.round);
        take_turn();
        start_scores<T, Tile>(scores[0], queries, describe_tile<true>(stage_k(of_warp<uniform>(stage.place))));
      };
      const auto start_sums_of = [&](const ring_counter<stages>& from) {
        await_barrier(full_v + from.place, from.round);
        start_sums<T, Tile>(sums[0], weights, describe_tile<false, keys>(stage_v(of_warp<uniform>(from.place))));
      };
      const auto weigh = [&](int i) {
        softmax.template weigh<Mask, Causal>(scores, shrink, s, mask, at.batch, i * keys, s.keys);
      };
      const auto step = [&]<bool Whole>(int i) {
        const ring_counter<stages> last = stage;
        stage.next();
        start_scores_here();
        start_sums_of(last);
        end_turn();
        wgmma_wait<1>();
        hold_all(scores[0]);
        arrive(read_k + stage.place);
        if constexpr (Whole)
          softmax.weigh_all(scores, shrink, s.scale * log2_e);
        else
          weigh(i);
        // keeps the compiler's order; NVRTC 13's assembler still waits before most exponentials, and what holds it back
        // costs more registers than it gains
        hold_all(scores[0]);
        wgmma_wait<0>();
        arrive(read_v + last.place);
        hold_all(sums[0]);
        if (any_lane(shrink[0] != 1 || shrink[1] != 1)) softmax.scale(sums, shrink);
        take_weights();
      };
      int i = at.steps() - 1;
      if constexpr (Causal && groups == 4) {
        const int seen = exists ? at.keys_of(first.query + unit - 1) : 0;
        KILN_NO_UNROLL
        for (; i >= (seen + keys - 1) / keys; --i, stage.next()) {
          await_barrier(full_k + stage.place, stage.round);
          arrive(read_k + stage.place);
          await_barrier(full_v + stage.place, stage.round);
          arrive(read_v + stage.place);
        }
      }
      const bool any = i >= 0;
      if (any) {
        start_scores_here();
        end_turn();
        wgmma_wait<0>();
        hold_all(scores[0]);
        arrive(read_k + stage.place);
        weigh(i--);
        take_weights();
        // steps below have keys that all of the unit's queries see
        const int whole = Mask == mask_kind::none && s.scale > 0 ? at.keys_of(first.query) / keys : 0;
        KILN_NO_UNROLL
        for (; i >= whole; --i) step.template operator()<false>(i);
        if constexpr (Mask == mask_kind::none) {
          KILN_NO_UNROLL
          for (; i >= 0; --i) step.template operator()<true>(i);
        }
      }
      arrive(read_q + at_q.place);
      if (any) {
        start_sums_of(stage);
        wgmma_wait<0>();
        hold_all(sums[0]);
        arrive(read_v + stage.place);
        stage.next();
      }
      softmax.join_totals();
      softmax.template store<value_depth, 8, memory.step_v()>(out, s, at.batch, at.kv_head, row0, all_rows, sums,
                                                              results);
    }
  }
}

}  // namespace kiln::gpu
#endif

#pragma once
#include "kiln/backend/hip/kernels/atom/wgmma.hpp"
#include "kiln/backend/hip/kernels/gemm/gemm.hpp"

namespace kiln::gpu {

#if KILN_NVIDIA
/// Where the stages of a pipeline are that goes on from tile to tile: a stage's place, and how often it was filled.
template <int Stages> struct stage_counter {
  int place = 0, round = 0;
  KILN_FN void next() {
    if (++place == Stages) place = 0, ++round;
  }
};

/// `gemm` on the matrix unit of sm_90 that reads shared memory itself, over tiles of `Cols` columns (`turns_tile`).
/// Four warps copy the stages of one tile after the other, as far ahead as there is room; the others multiply, and
/// store a tile while the next one's stages arrive. block_x counts blocks that share the tiles of an entry, block_y
/// batch entries; the depth is not split.
template <class T, int Cols, class A, class B, class Result>
KILN_FN void gemm_in_turns(const A& a, const B& b, const Result& result, const gemm_sizes& s, char* shared) {
  constexpr turns_tile sized{Cols};
  using atom = atom_mma<T>;
  constexpr int rows = turns_tile::rows, depth = turns_tile::depth, part = turns_tile::part, stages = sized.stages();
  constexpr int copiers = turns_tile::copying * 32, multipliers = turns_tile::warps_m - turns_tile::copying;
  using part_tile = block_tile<rows, part, depth, multipliers, 1, stages>;
  using layout_a = swizzled_layout<T, A::depth_contiguous, rows, depth>;
  using layout_b = swizzled_layout<T, B::depth_contiguous, Cols, depth>;
  using from_a_t = typename A::template cursor<rows, depth, copiers, layout_a>;
  using from_b_t = typename B::template cursor<Cols, depth, copiers, layout_b>;
  // pieces of a line are exchanged by its number modulo 8, and a thread's lines are so many apart
  static_assert(from_a_t::chunks::apart % 8 == 0 && from_b_t::chunks::apart % 8 == 0);
  const auto stage_a = [&](int place) { return reinterpret_cast<T*>(shared + place * sized.stage_bytes()); };
  const auto stage_b = [&](int place) { return stage_a(place) + rows * depth; };
  u64* const full = reinterpret_cast<u64*>(shared + sized.barriers_at());  // copied by all copying threads
  u64* const read = full + stages;                                         // multiplied by all multiplying warps
  if (thread_index() == 0) KILN_UNROLL
  for (int i = 0; i < stages; ++i) {
    start_barrier(full + i, copiers);
    start_barrier(read + i, multipliers);
  }
  sync_block();
  await_last();
  const int tiles = s.tiles_m * s.tiles_n;
  stage_counter<stages> stage;
  if (thread_index() < copiers) {
    leave_registers<88>();
    KILN_NO_UNROLL
    for (int tile = block_x(); tile < tiles; tile += blocks_x()) {
      const tile_place at(s, rows, Cols, depth, tile);
      if (at.steps <= few_steps)
        expect_operands<rows, Cols, copiers>(result, at.b0, at.b1, at.row0, at.col0, s.rows, s.cols);
      from_a_t from_a(a, at.b0, at.b1, at.row0, s.rows, 0, s.depth);
      from_b_t from_b(b, at.b0, at.b1, at.col0, s.cols, 0, s.depth);
      KILN_NO_UNROLL
      for (int i = 0; i < at.steps; ++i, stage.next()) {
        if (stage.round > 0) await_barrier(read + stage.place, stage.round - 1);
        from_a.copy(stage_a(stage.place));
        from_b.copy(stage_b(stage.place));
        arrive_when_copied(full + stage.place);
      }
    }
    copy_commit();
    copy_wait<0>();
  } else {
    take_registers<208>();
    const int warp = thread_index() / 32 - turns_tile::copying, group = warp / 4;
    auto* staging =
        reinterpret_cast<float*>(shared + sized.staging_at()) + warp * epilogue_layout<atom, part_tile>::elements;
    const auto arrive = [&](int place) {
      sync_warp();
      if (lane_index() == 0) arrive_at(read + place);
    };
    KILN_NO_UNROLL
    for (int tile = block_x(); tile < tiles; tile += blocks_x()) {
      const tile_place at(s, rows, Cols, depth, tile);
      float c[Cols / 2];
      KILN_UNROLL
      for (int i = 0; i < Cols / 2; ++i) c[i] = 0;
      int last = 0;
      KILN_NO_UNROLL
      for (int i = 0; i < at.steps; ++i, stage.next()) {
        await_barrier(full + stage.place, stage.round);
        fence_for_wgmma();
        // a block of lines has 64 rows and 64 depths, whichever of them is contiguous
        const T *tile_a = stage_a(stage.place) + group * 64 * 64, *tile_b = stage_b(stage.place);
        wgmma_fence();
        KILN_UNROLL
        for (int k = 0; k < depth; k += 16)
          multiply_wgmma<T, !A::depth_contiguous, !B::depth_contiguous>(
              c, describe_tile<A::depth_contiguous>(tile_a + k * (A::depth_contiguous ? 1 : 64)),
              describe_tile<B::depth_contiguous>(tile_b + k * (B::depth_contiguous ? 1 : 64)));
        wgmma_commit();
        wgmma_wait<1>();
        if (i > 0) arrive(last);
        last = stage.place;
      }
      wgmma_wait<0>();
      arrive(last);
      KILN_UNROLL
      for (int q = 0; q < Cols; q += part) {
        typename atom::accumulator sums[1][part / 16];
        KILN_UNROLL
        for (int i = 0; i < part / 2; ++i) sums[0][i / 8].at[i % 8] = c[q / 2 + i];
        if (at.col0 + q < s.cols)
          apply_epilogue<atom, part_tile>(sums, staging, result, at.b0, at.b1, at.row0 + warp * 16, at.col0 + q, s.rows,
                                          s.cols);
      }
    }
  }
}
#endif

}  // namespace kiln::gpu

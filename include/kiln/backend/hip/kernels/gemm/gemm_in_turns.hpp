#pragma once
#include "kiln/backend/hip/kernels/atom/wgmma.hpp"
#include "kiln/backend/hip/kernels/gemm/gemm.hpp"
#include "kiln/backend/hip/kernels/platform/stage_counter.hpp"

namespace kiln::gpu {

#if KILN_NVIDIA
/// A factor as the copy unit reads it, a box of 64 depths after the other: rows of a matrix, or windows of images whose
/// channels are a multiple of 64.
template <class Factor> struct copied_boxes {
  const Factor& factor;
  int row0;
  KILN_FN copied_boxes(const Factor& factor, int row0) : factor(factor), row0(row0) {}
  KILN_FN void copy(void* to, const tensor_map& map, int step, u64* barrier) const {
    copy_box(to, map, step * 64, row0, barrier);
  }
};
template <class Factor>
requires Factor::of_image struct copied_boxes<Factor> {
  const Factor& m;
  int image, row, col;  // where the first window begins
  KILN_FN copied_boxes(const Factor& m, int row0) : m(m), image(row0 / m.out_pixels) {
    static_assert(Factor::even && !Factor::volume);
    const int pixel = row0 - image * m.out_pixels, line = pixel / m.out_cols, place = pixel - line * m.out_cols;
    row = Factor::corner_of(line, m.stride_rows, m.pad_rows), col = Factor::corner_of(place, m.stride_cols, m.pad_cols);
    if constexpr (Factor::backwards)  // windows begin with their last tap
      row -= (Factor::kernel_rows - 1) * m.dilation_rows, col -= (Factor::kernel_cols - 1) * m.dilation_cols;
  }
  KILN_FN void copy(void* to, const tensor_map& map, int step, u64* barrier) const {
    auto tap = m.at_depth(step * 64);
    if constexpr (Factor::backwards)
      tap.row = Factor::kernel_rows - 1 - tap.row, tap.col = Factor::kernel_cols - 1 - tap.col;
    copy_windows(to, map, tap.channel, col, row, image, tap.col * m.dilation_cols, tap.row * m.dilation_rows, barrier);
  }
};

/// `gemm` on the matrix unit of sm_90 that reads shared memory itself, over tiles of `Cols` columns (`turns_tile`);
/// both depths are contiguous, there is no batch, and the depth is not split. A thread has the copy unit fill the
/// stages of one tile after the other, as far ahead as there is room; two groups of four warps multiply half a tile
/// each, and store it while the next one's stages arrive. Where they `Alternate`, each has a tile of its own: one
/// multiplies while the other stores. block_x counts blocks that share the tiles.
template <class T, int Cols, bool Alternate, class A, class B, class Result>
KILN_FN void gemm_in_turns(const A& a, const B& b, const Result& result, const gemm_sizes& s, const tensor_map& map_a,
                           const tensor_map& map_b, char* shared) {
  constexpr turns_tile sized{Cols};
  using atom = atom_mma<T>;
  constexpr int rows = turns_tile::rows, depth = turns_tile::depth, part = turns_tile::part, stages = sized.stages();
  constexpr int copiers = turns_tile::copying * 32, multipliers = turns_tile::warps_m - turns_tile::copying;
  using part_tile = block_tile<rows, part, depth, multipliers, 1, stages>;
  constexpr int group_warps = 4, group_rows = 64, halves = Alternate ? 2 : 1, at_once = Alternate ? 2 : 1;
  const auto stage_a = [&](int place) { return reinterpret_cast<T*>(shared + place * sized.stage_bytes()); };
  const auto stage_b = [&](int place) { return stage_a(place) + rows * depth; };
  u64* const full = reinterpret_cast<u64*>(shared + sized.barriers_at());
  u64* const read = full + stages;  // multiplied by all warps that do
  u64* const turn = read + stages;  // a group may begin its tile: the other one has all that it waited for
  if (thread_index() == 0) {
    KILN_UNROLL
    for (int i = 0; i < stages; ++i) {
      start_barrier(full + i, 1);
      start_barrier(read + i, Alternate ? group_warps : multipliers);
    }
    if constexpr (Alternate)
      for (int g = 0; g < 2; ++g) start_barrier(turn + g, group_warps);
    fence_barriers();
  }
  sync_block();
  await_last();
  const int tiles = s.tiles_m * s.tiles_n;
  stage_counter<stages> stage;
  if (thread_index() < copiers) {
    leave_registers<56>();
    KILN_NO_UNROLL
    for (int tile = block_x(); tile < tiles; tile += blocks_x()) {
      const tile_place at(s, rows, Cols, depth, tile);
      if (at.steps <= few_steps) expect_operands<rows, Cols, copiers>(result, 0, 0, at.row0, at.col0, s.rows, s.cols);
      if (thread_index() == 0) {
        const copied_boxes<A> from_a(a, at.row0);
        const copied_boxes<B> from_b(b, at.col0);
        KILN_NO_UNROLL
        for (int i = 0; i < at.steps; ++i, stage.next()) {
          if (stage.round > 0) await_barrier(read + stage.place, stage.round - 1);
          u64* const arrived = full + stage.place;
          arrive_and_expect(arrived, sized.stage_bytes());
          from_a.copy(stage_a(stage.place), map_a, i, arrived);
          from_b.copy(stage_b(stage.place), map_b, i, arrived);
        }
      }
      sync_warp();
      sync_some<copiers>();  // prefetches are not to run ahead
    }
  } else {
    take_registers<224>();
    const int warp = thread_index() / 32 - turns_tile::copying, group = warp / group_warps;
    auto* staging =
        reinterpret_cast<float*>(shared + sized.staging_at()) + warp * epilogue_layout<atom, part_tile>::elements;
    const auto arrive = [&](int place) {
      sync_warp();
      if (lane_index() == 0) arrive_at(read + place);
    };
    const int steps = (s.depth + depth - 1) / depth;
    const int first = Alternate ? group : 0, first_row = Alternate ? warp % group_warps * 16 : warp * 16;
    if (first != 0) stage.skip(steps);
    int own = 0;  // tiles so far
    KILN_NO_UNROLL
    for (int tile = block_x() + first * blocks_x(); tile < tiles; tile += at_once * blocks_x(), ++own) {
      const tile_place at(s, rows, Cols, depth, tile);
      float c[halves][Cols / 2];
      KILN_UNROLL
      for (int h = 0; h < halves; ++h) KILN_UNROLL
      for (int i = 0; i < Cols / 2; ++i) c[h][i] = 0;
      int last = 0;
      // a barrier tells one phase from the next one only: stages are awaited in order
      if (Alternate && first + own > 0) await_barrier(turn + group, first + own - 1);
      KILN_NO_UNROLL
      for (int i = 0; i < steps; ++i, stage.next()) {
        await_barrier(full + stage.place, stage.round);
        const T *tile_a = stage_a(stage.place) + (Alternate ? 0 : group * group_rows * depth),
                *tile_b = stage_b(stage.place);
        wgmma_fence();
        KILN_UNROLL
        for (int k = 0; k < depth; k += 16) KILN_UNROLL
        for (int h = 0; h < halves; ++h)
          multiply_wgmma<T, 0, 0>(c[h], describe_tile<true>(tile_a + h * group_rows * depth + k),
                                  describe_tile<true>(tile_b + k));
        wgmma_commit();
        wgmma_wait<1>();
        if (i > 0) arrive(last);
        last = stage.place;
      }
      if constexpr (Alternate) {
        sync_warp();
        if (lane_index() == 0) arrive_at(turn + 1 - group);
        stage.skip(steps);  // the other group's
      }
      wgmma_wait<0>();
      arrive(last);
      KILN_UNROLL
      for (int h = 0; h < halves; ++h) KILN_UNROLL
      for (int q = 0; q < Cols; q += part) {
        typename atom::accumulator sums[1][part / 16];
        KILN_UNROLL
        for (int i = 0; i < part / 2; ++i) sums[0][i / 8].at[i % 8] = c[h][q / 2 + i];
        if (at.col0 + q < s.cols)
          apply_epilogue<atom, part_tile>(sums, staging, result, 0, 0, at.row0 + h * group_rows + first_row,
                                          at.col0 + q, s.rows, s.cols);
      }
    }
  }
}
#endif

}  // namespace kiln::gpu

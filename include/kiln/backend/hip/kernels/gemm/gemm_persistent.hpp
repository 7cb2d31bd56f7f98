#pragma once
#include "kiln/backend/hip/kernels/atom/wgmma.hpp"
#include "kiln/backend/hip/kernels/gemm/gemm.hpp"
#include "kiln/backend/hip/kernels/gemm/tma_store.hpp"
#include "kiln/backend/hip/kernels/platform/ring_counter.hpp"

namespace kiln::gpu {

#if !KILN_AMD
/// A factor as the copy unit reads it, 128 bytes of the depth after the other: `Across` rows of a matrix in boxes of
/// `persistent_tile::lines_of_box`, or windows of images whose channels are a multiple of those bytes. Of a matrix
/// whose rows are neighbors a box has 64 of them, and a line for each depth. Boxes without a row are not read, since
/// these take longer than others: what products they leave is not stored.
template <class Factor, int Across> struct tma_tiles {
  const Factor& factor;
  int row0, lines, across;  // of a box, and of those that have a row
  KILN_FN tma_tiles(const Factor& factor, int row0, int rows)
      : factor(factor),
        row0(row0),
        lines(Factor::depth_contiguous ? persistent_tile::lines_of_box(rows, Across) : persistent_tile::part) {
    const int left = (rows - row0 + lines - 1) / lines * lines;
    across = left < Across ? left : Across;
  }
  KILN_FN int bytes() const { return across * persistent_tile::line_bytes; }
  KILN_FN void copy(void* to, const tensor_map& map, int step, u64* barrier) const {
    using element = typename Factor::element;
    constexpr int depth = persistent_tile::depth_of(sizeof(element)), part = persistent_tile::part;
    const auto copy_part = [&](int i) {
      element* const at = static_cast<element*>(to) + i * depth;
      if constexpr (Factor::depth_contiguous)
        tma_load(at, map, step * depth, row0 + i, barrier);
      else
        tma_load(at, map, row0 + i, step * depth, barrier);
    };
    if (lines == Across) {
      copy_part(0);
    } else if (across == Across) {  // without a branch for each: one thread copies for the block
      KILN_UNROLL
      for (int i = 0; i < Across; i += part) copy_part(i);
    } else {
      KILN_NO_UNROLL
      for (int i = 0; i < across; i += part) copy_part(i);
    }
  }
};
template <class Factor, int Across>
requires Factor::of_image struct tma_tiles<Factor, Across> {
  const Factor& m;
  int image, row, col;  // where the first window begins
  KILN_FN tma_tiles(const Factor& m, int row0, int) : m(m), image(row0 / m.out_pixels) {
    static_assert(Factor::even && !Factor::volume);
    const int pixel = row0 - image * m.out_pixels, line = pixel / m.out_cols, place = pixel - line * m.out_cols;
    row = Factor::corner_of(line, m.stride_rows, m.pad_rows), col = Factor::corner_of(place, m.stride_cols, m.pad_cols);
    if constexpr (Factor::backwards)  // windows begin with their last tap
      row -= (Factor::kernel_rows - 1) * m.dilation_rows, col -= (Factor::kernel_cols - 1) * m.dilation_cols;
  }
  KILN_FN int bytes() const { return Across * persistent_tile::line_bytes; }
  KILN_FN void copy(void* to, const tensor_map& map, int step, u64* barrier) const {
    auto tap = m.at_depth(step * persistent_tile::depth_of(sizeof(typename Factor::element)));
    if constexpr (Factor::backwards)
      tap.row = Factor::kernel_rows - 1 - tap.row, tap.col = Factor::kernel_cols - 1 - tap.col;
    copy_windows(to, map, tap.channel, col, row, image, tap.col * m.dilation_cols, tap.row * m.dilation_rows, barrier);
  }
};

/// A group's products of the first `count` of some stages, where the matrix unit keeps too few bits of its sums: it
/// sums one part of the columns after the other from 0, and lanes add what it gives to sums of f32. The other group's
/// products run meanwhile. `begun` is called when those of the first part are there.
template <class T, int Cols, int Halves, int Sums, int Most, class Begun>
KILN_FN void add_stages(float (&c)[Halves][Sums], const T* const (&tile_a)[Most], const T* const (&tile_b)[Most],
                        int count, Begun begun) {
  constexpr int depth = persistent_tile::depth_of(sizeof(T)), at_once = 32 / sizeof(T), wide = Cols < 128 ? Cols : 128;
  KILN_UNROLL
  for (int h = 0; h < Halves; ++h) KILN_UNROLL
  for (int q = 0; q < Cols; q += wide) {
    float some[wide / 2];
    wgmma_fence();
    KILN_UNROLL
    for (int s = 0; s < Most; ++s) {
      if (s >= count) continue;
      KILN_UNROLL
      for (int d = 0; d < depth; d += at_once) {
        const u64 a = describe_tile<true>(tile_a[s] + h * 64 * depth + d),
                  b = describe_tile<true>(tile_b[s] + q * depth + d);
        if (s == 0 && d == 0)
          multiply_wgmma<T, 0, 0, false>(some, a, b);
        else
          multiply_wgmma<T, 0, 0>(some, a, b);
      }
    }
    wgmma_commit();
    wgmma_wait<0>();
    if (h == 0 && q == 0) begun();
    hold_sums(some);
    KILN_UNROLL
    for (int j = 0; j < wide / 2; ++j) c[h][q / 2 + j] += some[j];
  }
}

/// `gemm` on the matrix unit of sm_90 that reads shared memory itself, over tiles as `Sized` says (`persistent_tile`);
/// depths are contiguous or, of matrices of 16-bit floats, rows and columns are; there is no batch, and the depth is
/// not split. A thread has the copy unit fill the stages of one tile after the other, as far ahead as there is room;
/// two groups of four warps multiply half a tile each, and store it while the next one's stages arrive. Where they
/// alternate, each has a tile of its own: one multiplies while the other stores. Results leave through sums of 32 bits
/// or through boxes (tma_store.hpp). block_x counts blocks that share the tiles.
template <class T, persistent_tile Sized, class A, class B, class Result>
KILN_FN void gemm_persistent(const A& a, const B& b, const Result& result, const gemm_sizes& s,
                             const persistent_maps& maps, char* shared) {
  constexpr int rows = Sized.rows, cols = Sized.cols, depth = Sized.depth_of(sizeof(T)), part = Sized.part,
                stages = Sized.stages();
  constexpr bool adds_stages = sizeof(T) == 1;  // sums of many products lose bits
  static_assert(!adds_stages || (A::depth_contiguous && B::depth_contiguous));
  // elements from one depth of a stage's tile to the next: a line where rows or columns are neighbors
  constexpr int along_a = A::depth_contiguous ? 1 : part, along_b = B::depth_contiguous ? 1 : part;
  constexpr int joined = cols == 256 ? 2 : 1;  // stages that are summed before lanes add, where these wait the longest
  constexpr int copiers = Sized.copying * 32, multipliers = Sized.warps_m - Sized.copying;
  constexpr bool alternate = Sized.alternate;
  constexpr int group_warps = 4, group_rows = 64, halves = alternate ? 2 : 1, at_once = alternate ? 2 : 1;
  using atom = atom_mma<f16>;  // whose lanes hold the same sums
  using part_tile = block_tile<rows, part, depth, multipliers, 1, stages>;
  using boxes = tma_store<Result, Sized.boxes>;
  const auto stage_a = [&](int place) { return reinterpret_cast<T*>(shared + place * Sized.stage_bytes()); };
  const auto stage_b = [&](int place) { return stage_a(place) + rows * depth; };
  u64* const full = reinterpret_cast<u64*>(shared + Sized.barriers_at());
  u64* const read = full + stages;  // multiplied by all warps that do
  u64* const turn = read + stages;  // a group may begin its tile: the other one has all that it waited for, or began
  const auto boxes_of = [&](int group) { return boxes(result, shared + Sized.leaving_at(), turn + 2, group); };
  if (thread_index() == 0) {
    KILN_UNROLL
    for (int i = 0; i < stages; ++i) {
      start_barrier(full + i, 1);
      start_barrier(read + i, alternate ? group_warps : multipliers);
    }
    for (int g = 0; g < 2; ++g) start_barrier(turn + g, group_warps), boxes_of(g).start();
    fence_barriers();
  }
  sync_block();
  await_last();
  const int tiles = s.tiles_m * s.tiles_n, count = (tiles - block_x() + blocks_x() - 1) / blocks_x();
  const auto tile_of = [&](int i) { return tile_place(s, rows, cols, depth, block_x() + i * blocks_x()); };
  const int steps = (s.depth + depth - 1) / depth;
  ring_counter<stages> stage;
  if (thread_index() < copiers) {
    leave_registers<adds_stages ? 40 : 56>();
    // the second and third warp bring a group's operand each
    if constexpr (boxes::brings) {
      const int group = thread_index() / warp_lanes - 1;
      if (lane_index() == 0 && (group == 0 || group == 1)) {
        boxes its = boxes_of(group);
        KILN_NO_UNROLL
        for (int i = alternate ? group : 0; i < count; i += at_once) {
          const auto at = tile_of(i);
          KILN_NO_UNROLL
          for (int h = 0; h < halves; ++h) KILN_NO_UNROLL
          for (int q = 0; q < cols && at.col0 + q < s.cols; q += part)
            its.bring(maps.operand, at.row0 + (alternate ? h : group) * group_rows, at.col0 + q);
        }
      }
    }
    KILN_NO_UNROLL
    for (int i = 0; i < count; ++i) {
      const auto at = tile_of(i);
      if (Sized.boxes == 0 && steps <= few_steps)
        expect_operands<rows, cols, copiers>(result, 0, 0, at.row0, at.col0, s.rows, s.cols);
      if (thread_index() == 0) {
        const tma_tiles<A, rows> from_a(a, at.row0, s.rows);
        const tma_tiles<B, cols> from_b(b, at.col0, s.cols);
        KILN_NO_UNROLL
        for (int k = 0; k < steps; ++k, stage.next()) {
          if (stage.round > 0) await_barrier(read + stage.place, stage.round - 1);
          u64* const arrived = full + stage.place;
          arrive_and_expect(arrived, from_a.bytes() + from_b.bytes());
          from_a.copy(stage_a(stage.place), maps.a, k, arrived);
          from_b.copy(stage_b(stage.place), maps.b, k, arrived);
        }
      }
      sync_warp();
      if constexpr (Sized.boxes == 0) sync_some<copiers>(1);  // prefetches are not to run ahead
    }
  } else {
    take_registers<adds_stages ? 232 : 224>();
    const int warp = thread_index() / 32 - Sized.copying, group = warp / group_warps;
    const auto arrive = [&](int place) {
      sync_warp();
      if (lane_index() == 0) arrive_at(read + place);
    };
    const int first = alternate ? group : 0, first_row = alternate ? warp % group_warps * 16 : warp * 16;
    if (first != 0) stage.skip(steps);
    boxes its = boxes_of(group);
    KILN_NO_UNROLL
    for (int i = first; i < count; i += at_once) {
      const auto at = tile_of(i);
      float c[halves][cols / 2];
      KILN_UNROLL
      for (int h = 0; h < halves; ++h) KILN_UNROLL
      for (int j = 0; j < cols / 2; ++j) c[h][j] = 0;
      int last = 0;
      // a barrier tells one phase from the next one only: stages are awaited in order
      if (alternate && i > 0) await_barrier(turn + group, (i - 1) / 2);
      KILN_NO_UNROLL
      for (int k = 0; k < steps; ++k, stage.next()) {
        await_barrier(full + stage.place, stage.round);
        if constexpr (adds_stages) {
          const T *tiles_a[joined], *tiles_b[joined];
          int places[joined];
          const int left = steps - k, together = left < joined ? left : joined;
          KILN_UNROLL
          for (int j = 0; j < joined; ++j) {
            if (j > 0 && j < together) {
              stage.next();
              await_barrier(full + stage.place, stage.round);
            }
            places[j] = stage.place;
            tiles_a[j] = stage_a(stage.place) + (alternate ? 0 : group * group_rows * depth);
            tiles_b[j] = stage_b(stage.place);
          }
          // groups that begin together would add together, too, while the unit waits: the second one begins when the
          // first one's products are there. Neither is a tile ahead where a tile has as many steps as there are stages
          const bool begins = joined > 1 && k == 0 && steps >= stages;
          k += together - 1;
          if (begins && group == 1) await_barrier(turn + 1, i);
          add_stages<T, cols>(c, tiles_a, tiles_b, together, [&] {
            if (!begins || group == 1) return;
            sync_warp();
            if (lane_index() == 0) arrive_at(turn + 1);
          });
          KILN_UNROLL
          for (int j = 0; j < joined; ++j)
            if (j < together) arrive(places[j]);
        } else {
          const T *tile_a = stage_a(stage.place) + (alternate ? 0 : group * group_rows * depth),
                  *tile_b = stage_b(stage.place);
          wgmma_fence();
          KILN_UNROLL
          for (int d = 0; d < depth; d += 16) KILN_UNROLL
          for (int h = 0; h < halves; ++h)
            multiply_wgmma<T, !A::depth_contiguous, !B::depth_contiguous>(
                c[h], describe_tile<A::depth_contiguous>(tile_a + h * group_rows * depth + d * along_a),
                describe_tile<B::depth_contiguous>(tile_b + d * along_b));
          wgmma_commit();
          wgmma_wait<1>();
          if (k > 0) arrive(last);
          last = stage.place;
        }
      }
      if constexpr (alternate) {
        sync_warp();
        if (lane_index() == 0) arrive_at(turn + 1 - group);
        stage.skip(steps);  // the other group's
      }
      if constexpr (!adds_stages) {
        wgmma_wait<0>();
        arrive(last);
      }
      KILN_UNROLL
      for (int h = 0; h < halves; ++h) KILN_UNROLL
      for (int q = 0; q < cols; q += part) {
        if (at.col0 + q >= s.cols) continue;
        if constexpr (Sized.boxes != 0) {
          its.leave(c[h], q / 2, maps.result, at.row0 + (alternate ? h : group) * group_rows, at.col0 + q, s.rows,
                    s.cols);
        } else {
          typename atom::accumulator sums[1][part / 16];
          KILN_UNROLL
          for (int j = 0; j < part / 2; ++j) sums[0][j / 8].at[j % 8] = c[h][q / 2 + j];
          auto* staging =
              reinterpret_cast<float*>(shared + Sized.leaving_at()) + warp * epilogue_layout<atom, part_tile>::elements;
          apply_epilogue<atom, part_tile>(sums, staging, result, 0, 0, at.row0 + h * group_rows + first_row,
                                          at.col0 + q, s.rows, s.cols);
        }
      }
    }
    its.finish();
  }
}
#endif

}  // namespace kiln::gpu

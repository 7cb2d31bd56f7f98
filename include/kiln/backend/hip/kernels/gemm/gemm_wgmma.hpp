#pragma once
#include "kiln/backend/hip/kernels/atom/wgmma.hpp"
#include "kiln/backend/hip/kernels/gemm/gemm.hpp"

namespace kiln::gpu {

#if KILN_NVIDIA
/// `gemm` on the matrix unit of sm_90 that reads shared memory itself, over a tile of `Cols` columns (`wgmma_tile`).
template <class T, int Cols, class A, class B, class Result>
KILN_FN void gemm_on_wgmma(const A& a, const B& b, const Result& result, const gemm_sizes& s, char* shared) {
  constexpr wgmma_tile sized{Cols};
  using tile =
      block_tile<wgmma_tile::rows, Cols, wgmma_tile::depth, wgmma_tile::warps_m, wgmma_tile::warps_n, sized.stages()>;
  using atom = atom_mma<T>;
  constexpr int threads = 256, atoms = Cols / 16;
  using layout_a = swizzled_layout<T, A::depth_contiguous, tile::rows, tile::depth>;
  using layout_b = swizzled_layout<T, B::depth_contiguous, tile::cols, tile::depth>;
  const tile_place at(s, tile::rows, tile::cols, tile::depth);
  typename A::template cursor<tile::rows, tile::depth, threads, layout_a> from_a(a, at.b0, at.b1, at.row0, s.rows,
                                                                                 at.step0 * tile::depth, s.depth);
  typename B::template cursor<tile::cols, tile::depth, threads, layout_b> from_b(b, at.b0, at.b1, at.col0, s.cols,
                                                                                 at.step0 * tile::depth, s.depth);
  const int warp = thread_index() / 32, group = warp / 4;
  constexpr int stage = (tile::rows + tile::cols) * tile::depth;
  const auto stage_a = [&](int i) { return reinterpret_cast<T*>(shared) + i % tile::stages * stage; };
  const auto stage_b = [&](int i) { return stage_a(i) + tile::rows * tile::depth; };

  if (at.steps <= few_steps)
    expect_operands<tile::rows, tile::cols, threads>(result, at.b0, at.b1, at.row0, at.col0, s.rows, s.cols);
  await_last();
  float c[Cols / 2];
  KILN_UNROLL
  for (int i = 0; i < Cols / 2; ++i) c[i] = 0;
  KILN_UNROLL
  for (int i = 0; i < 2; ++i) {
    if (i < at.steps) from_a.copy(stage_a(i)), from_b.copy(stage_b(i));
    copy_commit();
  }
  for (int i = 0; i < at.steps; ++i) {
    copy_wait<1>();
    fence_for_wgmma();
    sync_block();
    // a block of lines has 64 rows and 64 depths, whichever of them is contiguous
    const T *tile_a = stage_a(i) + group * 64 * 64, *tile_b = stage_b(i);
    wgmma_fence();
    KILN_UNROLL
    for (int k = 0; k < tile::depth; k += 16)
      multiply_wgmma<T, !A::depth_contiguous, !B::depth_contiguous>(
          c, describe_tile<A::depth_contiguous>(tile_a + k * (A::depth_contiguous ? 1 : 64)),
          describe_tile<B::depth_contiguous>(tile_b + k * (B::depth_contiguous ? 1 : 64)));
    wgmma_commit();
    // beside the products; those that read the stage before have ended, and every warp has waited for that
    if (i + 2 < at.steps) from_a.copy(stage_a(i + 2)), from_b.copy(stage_b(i + 2));
    copy_commit();
    wgmma_wait<sized.stages() - 3>();
  }
  wgmma_wait<0>();
  copy_wait<0>();
  sync_block();
  typename atom::accumulator sums[1][atoms];
  KILN_UNROLL
  for (int i = 0; i < Cols / 2; ++i) sums[0][i / 8].at[i % 8] = c[i];
  if (s.splits > 1 && !join_splits<atom, 1, atoms, threads>(sums, s, at.split, reinterpret_cast<int*>(shared))) return;
  auto* staging = reinterpret_cast<float*>(shared) + warp * epilogue_layout<atom, tile>::elements;
  apply_epilogue<atom, tile>(sums, staging, result, at.b0, at.b1, at.row0 + warp * 16, at.col0, s.rows, s.cols);
}
#endif

}  // namespace kiln::gpu

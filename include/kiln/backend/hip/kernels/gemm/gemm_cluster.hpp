#pragma once
#include "kiln/backend/hip/kernels/gemm/gemm.hpp"

namespace kiln::gpu {

#if KILN_NVIDIA
/// `gemm` whose blocks that share a tile are one cluster (from sm_90 on): each leaves its sums in its own shared
/// memory, then applies the epilogue to its part of the sum of all of them, in order.
template <class Atom, class Tile, int Splits, class A, class B, class Result>
KILN_FN void gemm_in_cluster(const A& a, const B& b, const Result& result, const gemm_sizes& s, char* shared) {
  using warps = warp_part<Atom, Tile>;
  using S = typename Atom::sum;
  constexpr int step = staging_step(Tile::cols), V = Result::width;
  constexpr bool along_rows = Result::along_rows;
  constexpr int runs = (along_rows ? Tile::rows : Tile::cols) / V, all = Tile::rows * Tile::cols / V;
  constexpr int share = (all + Splits - 1) / Splits;
  const tile_place at(s, Tile::rows, Tile::cols, Tile::depth);
  S* staging = reinterpret_cast<S*>(shared);
  {
    warps part;
    sum_products<Atom, Tile>(part, a, b, s, at, shared);
    KILN_UNROLL
    for (int m = 0; m < warps::atoms_m; ++m) KILN_UNROLL
    for (int n = 0; n < warps::atoms_n; ++n) KILN_UNROLL
    for (int i = 0; i < Atom::c_count; ++i) {
      const place p = Atom::c_at(lane_index(), i);
      staging[(part.row + m * Atom::m + p.row) * step + part.col + n * Atom::n + p.depth] = part.sums[m][n].at[i];
    }
  }
  sync_cluster();
  const int end = (at.split + 1) * share < all ? (at.split + 1) * share : all;
  for (int c = at.split * share + thread_index(); c < end; c += warps::threads) {
    const int line = c / runs, start = c % runs * V;
    const int r = along_rows ? start : line, q = along_rows ? line : start;
    const int row = at.row0 + r, col = at.col0 + q, left = along_rows ? s.rows - row : s.cols - col;
    if (row >= s.rows || col >= s.cols) continue;
    S parts[Splits][V];
    KILN_UNROLL
    for (int k = 0; k < Splits; ++k)
      read_block<along_rows ? step : 1>(parts[k], shared_of_block(staging + r * step + q, k));
    S values[V];
    KILN_UNROLL
    for (int i = 0; i < V; ++i) {
      values[i] = parts[0][i];
      KILN_UNROLL
      for (int k = 1; k < Splits; ++k) values[i] += parts[k][i];
    }
    apply_result(result, values, result.place.at(at.b0, at.b1, row, col), left < V ? left : V);
  }
  sync_cluster();  // the others read this block's shared memory
}
#endif

}  // namespace kiln::gpu

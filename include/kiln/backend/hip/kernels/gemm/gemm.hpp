#pragma once
#include "kiln/backend/hip/kernels/gemm/epilogue.hpp"
#include "kiln/backend/hip/kernels/gemm/operand.hpp"

namespace kiln::gpu {

/// What is known of a GEMM's factors: that every tile of one is whole, that the right one is a constant.
template <bool WholeA, bool WholeB, bool ConstantB> struct known_factors {
  static constexpr bool whole_a = WholeA, whole_b = WholeB, constant_b = ConstantB;
};

/// How a block works on a GEMM: its tile of the result, the depth of a step, its warps, and the stages of its software
/// pipeline.
template <int Rows, int Cols, int Depth, int WarpsM, int WarpsN, int Stages,
          class Known = known_factors<false, false, false>>
struct block_tile {
  static constexpr int rows = Rows, cols = Cols, depth = Depth, warps_m = WarpsM, warps_n = WarpsN, stages = Stages;
  using known = Known;
};

/// The shared memory of `gemm` for its atom, tile and factors.
template <class Atom, class Tile, class A, class B, bool Cluster = false>
inline constexpr gemm_memory memory_of_gemm = {Tile::rows,
                                               Tile::cols,
                                               Tile::depth,
                                               Tile::warps_m,
                                               Tile::warps_n,
                                               Tile::stages,
                                               A::depth_contiguous,
                                               B::depth_contiguous,
                                               sizeof(typename Atom::element),
                                               sizeof(typename Atom::sum),
                                               Atom::m,
                                               Cluster};

/// Which entry of a batch a block computes. Only a grid's first dim has more than 65535 blocks: an entry's tiles follow
/// those of the one before.
KILN_FN int entry_of(const gemm_sizes& s) { return block_x() / (s.tiles_m * s.tiles_n); }

/// Which part of a GEMM a block computes. Blocks that run together read few rows and columns: tiles are counted in
/// bands of eight rows of tiles.
struct tile_place {
  int row0, col0, split, entry, b0, b1, step0, steps;
  KILN_FN tile_place(const gemm_sizes& s, int rows, int cols, int depth)
      : tile_place(s, rows, cols, depth, block_x() - entry_of(s) * s.tiles_m * s.tiles_n) {}
  KILN_FN tile_place(const gemm_sizes& s, int rows, int cols, int depth, int tile) {
    constexpr int band = 8;
    const int in_band = band * s.tiles_n, first = tile / in_band * band;
    const int height = s.tiles_m - first < band ? s.tiles_m - first : band;
    row0 = (first + tile % in_band % height) * rows, col0 = tile % in_band / height * cols;
    split = block_y(), entry = entry_of(s);
    b0 = entry / s.inner_batch, b1 = entry % s.inner_batch;
    const int all_steps = (s.depth + depth - 1) / depth;
    step0 = static_cast<int>(static_cast<i64>(all_steps) * split / s.splits);
    steps = static_cast<int>(static_cast<i64>(all_steps) * (split + 1) / s.splits) - step0;
  }
};

/// Steps of a depth so short that the epilogue's operands had better be on their way when it begins.
inline constexpr int few_steps = 16;

/// What a warp sums: the part of the block's tile that begins at (row, col) of it.
template <class Atom, class Tile> struct warp_part {
  static constexpr int rows = Tile::rows / Tile::warps_m, cols = Tile::cols / Tile::warps_n;
  static constexpr int atoms_m = rows / Atom::m, atoms_n = cols / Atom::n;
  static constexpr int threads = Tile::warps_m * Tile::warps_n * warp_lanes;
  static_assert(atoms_m * Atom::m * Tile::warps_m == Tile::rows && atoms_n * Atom::n * Tile::warps_n == Tile::cols);
  int warp, row, col;
  typename Atom::accumulator sums[atoms_m][atoms_n];
  KILN_FN warp_part()
      : warp(thread_index() / warp_lanes), row(warp / Tile::warps_n * rows), col(warp % Tile::warps_n * cols), sums{} {}
};

/// Sums a block's tile over its range of the depth. A constant factor is prefetched while the kernel before ends.
/// Shared memory is free when it returns.
template <class Atom, class Tile, class A, class B>
KILN_FN void sum_products(warp_part<Atom, Tile>& part, const A& a, const B& b, const gemm_sizes& s,
                          const tile_place& at, char* shared) {
  using T = typename Atom::element;
  using layout_a = tile_layout<T, A::depth_contiguous, Tile::rows, Tile::depth>;
  using layout_b = tile_layout<T, B::depth_contiguous, Tile::cols, Tile::depth>;
  constexpr int stage_bytes = memory_of_gemm<Atom, Tile, A, B>.stage_bytes();
  using warps = warp_part<Atom, Tile>;
  constexpr int threads = warps::threads, atoms_m = warps::atoms_m, atoms_n = warps::atoms_n;
  const int row0 = at.row0, col0 = at.col0, b0 = at.b0, b1 = at.b1, step0 = at.step0, steps = at.steps;
  typename A::template cursor<Tile::rows, Tile::depth, threads> from_a(a, b0, b1, row0, s.rows, step0 * Tile::depth,
                                                                       s.depth);
  typename B::template cursor<Tile::cols, Tile::depth, threads> from_b(b, b0, b1, col0, s.cols, step0 * Tile::depth,
                                                                       s.depth);
  const auto stage_a = [&](int i) { return reinterpret_cast<T*>(shared + i % Tile::stages * stage_bytes); };
  const auto stage_b = [&](int i) { return stage_a(i) + layout_a::elements; };

  using known = typename Tile::known;
  if constexpr (known::constant_b) {
    KILN_UNROLL
    for (int i = 0; i < Tile::stages - 1; ++i)
      if (i < steps) from_b.template copy<known::whole_b>(stage_b(i));
    if (row0 == 0) from_b.expect(steps - (Tile::stages - 1));
  }
  await_last();
  KILN_UNROLL
  for (int i = 0; i < Tile::stages - 1; ++i) {
    if (i < steps) {
      from_a.template copy<known::whole_a>(stage_a(i));
      if constexpr (!known::constant_b) from_b.template copy<known::whole_b>(stage_b(i));
    }
    copy_commit();
  }
  for (int i = 0; i < steps; ++i) {
    copy_wait<Tile::stages - 2>();
    sync_block();
    const int ahead = i + Tile::stages - 1;
    if (ahead < steps) {
      from_a.template copy<known::whole_a>(stage_a(ahead));
      from_b.template copy<known::whole_b>(stage_b(ahead));
    }
    copy_commit();
    const T *tile_a = stage_a(i), *tile_b = stage_b(i);
    constexpr int step_a = layout_a::step, step_b = layout_b::step;
    KILN_UNROLL
    for (int k = 0; k < Tile::depth; k += Atom::k) {
      typename Atom::factor_a fa[atoms_m];
      KILN_UNROLL
      for (int m = 0; m < atoms_m; ++m) {
        const int r = part.row + m * Atom::m;
        Atom::template load_a<A::depth_contiguous>(
            fa[m], tile_a + (A::depth_contiguous ? r * step_a + k : k * step_a + r), step_a);
      }
      KILN_UNROLL
      for (int n = 0; n < atoms_n; ++n) {
        const int c = part.col + n * Atom::n;
        typename Atom::factor_b fb;
        Atom::template load_b<B::depth_contiguous>(fb, tile_b + (B::depth_contiguous ? c * step_b + k : k * step_b + c),
                                                   step_b);
        KILN_UNROLL
        for (int m = 0; m < atoms_m; ++m) Atom::multiply(part.sums[m][n], fa[m], fb);
      }
    }
  }
  copy_wait<0>();
  sync_block();
}

/// One tile of result[b, i, j] = epilogue(sum over k of a[b, i, k] * b[b, j, k]): block_x counts tiles of
/// one batch entry after those of another, block_y splits. Where the depth is split, the block that arrives last at a
/// tile sums what the others left, in order, so that a result does not depend on who comes last.
template <class Atom, class Tile, class A, class B, class Result>
KILN_FN void gemm(const A& a, const B& b, const Result& result, const gemm_sizes& s, char* shared) {
  using warps = warp_part<Atom, Tile>;
  const tile_place at(s, Tile::rows, Tile::cols, Tile::depth);
  warps part;
  if (at.steps <= few_steps)
    expect_operands<Tile::rows, Tile::cols, warps::threads>(result, at.b0, at.b1, at.row0, at.col0, s.rows, s.cols);
  sum_products<Atom, Tile>(part, a, b, s, at, shared);
  if (s.splits > 1 && !join_splits<Atom, warps::atoms_m, warps::atoms_n, warps::threads>(
                          part.sums, s, at.split, reinterpret_cast<int*>(shared)))
    return;
  auto* staging = reinterpret_cast<typename Atom::sum*>(shared) + part.warp * epilogue_layout<Atom, Tile>::elements;
  apply_epilogue<Atom, Tile>(part.sums, staging, result, at.b0, at.b1, at.row0 + part.row, at.col0 + part.col, s.rows,
                             s.cols);
}

}  // namespace kiln::gpu

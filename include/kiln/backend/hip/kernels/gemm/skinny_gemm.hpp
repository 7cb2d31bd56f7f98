#pragma once
#include "kiln/backend/hip/kernels/atom/atom_mma.hpp"
#include "kiln/backend/hip/kernels/gemm/epilogue.hpp"
#include "kiln/backend/hip/kernels/gemm/stored_numbers.hpp"

namespace kiln::gpu {

/// Eight neighbors as pairs of T; floats of eight bits become f16.
template <class T, class From> KILN_FN pack<u32, 4> eight_factors(const From* from) {
  if constexpr (sizeof(From) == 2) {
    return *reinterpret_cast<const pack<u32, 4>*>(from);
  } else {
    static_assert(elementary::same<T, f16>);
    const pack<u32, 2> in = *reinterpret_cast<const pack<u32, 2>*>(from);
    pack<u32, 4> to;
    KILN_UNROLL
    for (int i = 0; i < 4; ++i) to.at[i] = two_halves<From>(in.at[i / 2] >> i % 2 * 16);
    return to;
  }
}
/// Elements `at` + `e` to `at` + `e` + 7 of the left rows that a lane has, in the order of the weights' pairs. `at` is
/// where the lane's piece begins; beyond the depth, and past the last row, they are 0.
template <class T, class Weights, class From, int Atoms>
KILN_FN void read_rows(pack<u32, 4> (&x)[Atoms], const matrix_argument<From>& a, int rows, int depth, int at, int e) {
  KILN_UNROLL
  for (int m = 0; m < Atoms; ++m) {
    const int row = m * 8 + lane_index() / 4;
    x[m] = {};
    if (row < rows && at < depth) x[m] = eight_factors<T>(a.base + row * a.row_step + at + e);
    Weights::order(x[m]);
  }
}
/// Adds the products of those and of numbers 8 `i` to 8 `i` + 7 of the lane's pieces of `Tiles` * 16 weight rows.
template <class T, class Weights, int Tiles, int Atoms>
KILN_FN void multiply_runs(typename atom_mma_narrow<T>::accumulator (&sums)[Tiles][Atoms], const Weights& weights,
                           const typename Weights::piece (&pieces)[Tiles * 2], const pack<u32, 4> (&x)[Atoms], int i) {
  using atom = atom_mma_narrow<T>;
  KILN_UNROLL
  for (int half = 0; half < 2; ++half) KILN_UNROLL
  for (int t = 0; t < Tiles; ++t) {
    typename atom::factor_a w;
    u32 low[2], high[2];
    weights.take(low, pieces[2 * t], 2 * i + half);
    weights.take(high, pieces[2 * t + 1], 2 * i + half);
    w.at[0] = low[0], w.at[1] = high[0], w.at[2] = low[1], w.at[3] = high[1];
    KILN_UNROLL
    for (int m = 0; m < Atoms; ++m) atom::multiply(sums[t][m], w, {{x[m].at[2 * half], x[m].at[2 * half + 1]}});
  }
}
/// Writes a warp's sums to its part of shared memory, rows of `few_rows_step(Width)`.
template <class T, int Width, int Tiles, int Atoms>
KILN_FN void leave_sums(const typename atom_mma_narrow<T>::accumulator (&sums)[Tiles][Atoms], float* mine) {
  using atom = atom_mma_narrow<T>;
  KILN_UNROLL
  for (int t = 0; t < Tiles; ++t) KILN_UNROLL
  for (int m = 0; m < Atoms; ++m) KILN_UNROLL
  for (int i = 0; i < atom::c_count; ++i) {
    const place p = atom::c_at(lane_index(), i);
    mine[(m * 8 + p.depth) * few_rows_step(Width) + t * 16 + p.row] = sums[t][m].at[i];
  }
}
/// Adds what the warps of a block left and applies the epilogue to it, for the `Width` columns from `col0` on of which
/// those before `end` exist.
template <class Weights, int Height, int Width, int Warps, class Result>
KILN_FN void join_warps(const Result& result, const float* sums, int rows, int col0, int end) {
  constexpr int V = Result::width, runs_of_row = Width / V, step = few_rows_step(Width);
  static_assert(!Result::along_rows && Height * runs_of_row <= Warps * warp_lanes);
  // a thread's operands of the epilogue come while the block waits for its last warp
  const int row = thread_index() / runs_of_row, col = thread_index() % runs_of_row * V, left = end - col0 - col;
  const int count = left < V ? left : V;
  const bool inside = row < rows && count > 0;
  const position to = result.place.at(0, 0, row, col0 + col);
  typename Result::template operands<V> x;
  if (inside) result.read(x, to, count);
  sync_block();
  if (!inside) return;
  float values[V];
  KILN_UNROLL
  for (int v = 0; v < V; ++v) values[v] = sums[row * step + col + v];
  for (int w = 1; w < Warps; ++w) KILN_UNROLL
  for (int v = 0; v < V; ++v) values[v] += sums[w * (Height * step) + row * step + col + v];
  if constexpr (Weights::unit != 1) {
    KILN_UNROLL
    for (int v = 0; v < V; ++v) values[v] *= Weights::unit;
  }
  result.apply(values, x, to, count);
}

/// result[i, j] = epilogue(sum over k of a[i, k] * weights[j, k]) for at most `Atoms` * 8 rows i: reading the weights
/// takes the time, so they go from memory to registers, a run of 16 bytes a lane, several runs ahead, and are the left
/// factor of a matrix instruction whose columns are the rows of `a`. Four lanes hold neighboring runs of one weight
/// row; which depth an instruction takes from which lane does not matter, as long as both factors agree. The warps of a
/// block share its `Tiles` * 16 columns, each a part of the depth. block_x counts those.
template <class T, class Weights, int Atoms, int Tiles, int Warps, int Ahead, class From, class Result>
KILN_FN void skinny_gemm(const matrix_argument<From>& a, const Weights& weights, const Result& result, int rows,
                         int cols, int depth, float* shared) {
  using atom = atom_mma_narrow<T>;
  constexpr int run = Weights::run, chunk = 4 * run, width = Tiles * 16, height = Atoms * 8;
  const int warp = thread_index() / warp_lanes, lane = lane_index(), group = lane / 4, along = lane % 4 * run;
  const int col0 = block_x() * width, chunks = (depth + chunk - 1) / chunk;

  typename Weights::piece pieces[Ahead][Tiles * 2];
  const auto read = [&](typename Weights::piece(&to)[Tiles * 2], int c) {
    const int at = c * chunk + along;
    KILN_UNROLL
    for (int i = 0; i < Tiles * 2; ++i) {
      const int col = col0 + i * 8 + group;
      weights.read(to[i], col < cols ? col : cols - 1, at, at < depth);
    }
  };
  KILN_UNROLL
  for (int j = 0; j < Ahead; ++j)
    if (warp + j * Warps < chunks) read(pieces[j], warp + j * Warps);
  await_last();

  typename atom::accumulator sums[Tiles][Atoms] = {};
  for (int first = warp; first < chunks; first += Warps * Ahead) {
    KILN_UNROLL
    for (int j = 0; j < Ahead; ++j) {
      const int c = first + j * Warps;
      if (c >= chunks) continue;
      KILN_UNROLL
      for (int i = 0; i < run / 8; ++i) {
        pack<u32, 4> x[Atoms];
        read_rows<T, Weights>(x, a, rows, depth, c * chunk + along, i * 8);
        multiply_runs<T>(sums, weights, pieces[j], x, i);
      }
      if (c + Ahead * Warps < chunks) read(pieces[j], c + Ahead * Warps);
    }
  }
  leave_sums<T, width>(sums, shared + warp * (height * few_rows_step(width)));
  join_warps<Weights, height, width, Warps>(result, shared, rows, col0, cols);
}

}  // namespace kiln::gpu

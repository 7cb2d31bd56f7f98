#pragma once
#include "kiln/backend/hip/kernels/gemm/epilogue.hpp"
#include "kiln/backend/hip/kernels/platform/elements.hpp"

namespace kiln::gpu {

/// A GEMM of which one factor has few rows, on the vector unit: reading the other one takes the time, so that it goes
/// from memory to registers once, 16 bytes a lane. `Few` is at least the count of those rows; `Left`: they are the left
/// factor's. `block_x` counts parts of the many rows, those of an entry of the batch after those of the one before.
template <int Few, bool Left> struct streamed_rows {
  /// The factors in either order, of the block's entry.
  template <class T> struct factors {
    const matrix_argument<T>&many, &few;
    const T *from, *with;
    int b0, b1, lines, count, part;
    KILN_FN factors(const matrix_argument<T>& a, const matrix_argument<T>& b, const gemm_sizes& s)
        : many(Left ? b : a), few(Left ? a : b), lines(Left ? s.cols : s.rows), count(Left ? s.rows : s.cols) {
      const int entry = block_x() / s.tiles_n;
      part = block_x() - entry * s.tiles_n, b0 = entry / s.inner_batch, b1 = entry - b0 * s.inner_batch;
      from = many.base + (b0 * many.batch[0] + b1 * many.batch[1]);
      with = few.base + (b0 * few.batch[0] + b1 * few.batch[1]);
    }
    template <class S, class Result> KILN_FN void store(const Result& result, S sum, int f, int line) const {
      S one[1] = {sum};
      apply_result(result, one, result.place.at(b0, b1, Left ? f : line, Left ? line : f), 1);
    }
  };
};

/// Where the depth of many rows is contiguous: each of `Warps` warps works `Lines` of them, its lanes neighboring runs
/// of the depth, which these divide. With `Joined` the few rows' depths lie in such runs, too.
template <int Few, bool Left, bool Joined, int Lines, int Warps, class T, class Result>
KILN_FN void gemm_streamed_along(const matrix_argument<T>& a, const matrix_argument<T>& b, const Result& result,
                                 const gemm_sizes& s) {
  using S = sum_t<T>;
  constexpr int V = 16 / sizeof(T), step = warp_lanes * V;
  using run = pack<T, V>;
  const typename streamed_rows<Few, Left>::template factors<T> at(a, b, s);
  const int lane = lane_index(), first = (at.part * Warps + thread_index() / warp_lanes) * Lines;
  if (first >= at.lines) return;
  const T* from[Lines];
  KILN_UNROLL
  for (int l = 0; l < Lines; ++l) from[l] = at.from + (first + l < at.lines ? first + l : first) * at.many.row_step;
  S sums[Lines][Few] = {};
  for (int k = lane * V; k < s.depth; k += step) {
    run m[Lines];
    KILN_UNROLL
    for (int l = 0; l < Lines; ++l) m[l] = *reinterpret_cast<const run*>(from[l] + k);
    KILN_UNROLL
    for (int f = 0; f < Few; ++f) {
      const T* const x = at.with + ((f < at.count ? f : 0) * at.few.row_step + k * at.few.depth_step);
      run factors;
      if constexpr (Joined) {
        factors = *reinterpret_cast<const run*>(x);
      } else {
        KILN_UNROLL
        for (int v = 0; v < V; ++v) factors.at[v] = x[v * at.few.depth_step];
      }
      KILN_UNROLL
      for (int v = 0; v < V; ++v) KILN_UNROLL
      for (int l = 0; l < Lines; ++l) sums[l][f] += widen(factors.at[v]) * widen(m[l].at[v]);
    }
  }
  KILN_UNROLL
  for (int l = 0; l < Lines; ++l) KILN_UNROLL
  for (int f = 0; f < Few; ++f) {
    S& sum = sums[l][f];
    for (int x = 1; x < warp_lanes; x *= 2) sum += lane_value(sum, x);
    if (lane == (l * Few + f) % warp_lanes && f < at.count && first + l < at.lines) at.store(result, sum, f, first + l);
  }
}

/// Where many rows are neighbors in memory: a block works `Runs` runs of them, its threads the depths in turn; `shared`
/// has room for a sum of each of its warps, few rows and many.
template <int Few, bool Left, int Runs, int Warps, class T, class Result>
KILN_FN void gemm_streamed_across(const matrix_argument<T>& a, const matrix_argument<T>& b, const Result& result,
                                  const gemm_sizes& s, sum_t<T>* shared) {
  using S = sum_t<T>;
  constexpr int V = 16 / sizeof(T), runs = Runs, width = runs * V, threads = Warps * warp_lanes;
  using run = pack<T, V>;
  const typename streamed_rows<Few, Left>::template factors<T> at(a, b, s);
  const int thread = thread_index(), place = thread % runs * V, line = at.part * width + place;
  const T* const from = at.from + (line < at.lines ? line : 0);
  S sums[Few][V] = {};
  for (int k = thread / runs; k < s.depth; k += threads / runs) {
    const run m = *reinterpret_cast<const run*>(from + k * at.many.depth_step);
    KILN_UNROLL
    for (int f = 0; f < Few; ++f) {
      const S factor = widen(at.with[(f < at.count ? f : 0) * at.few.row_step + k * at.few.depth_step]);
      KILN_UNROLL
      for (int v = 0; v < V; ++v) sums[f][v] += factor * widen(m.at[v]);
    }
  }
  const int warp = thread / warp_lanes;
  KILN_UNROLL
  for (int f = 0; f < Few; ++f) KILN_UNROLL
  for (int v = 0; v < V; ++v) {
    S& sum = sums[f][v];
    for (int x = runs; x < warp_lanes; x *= 2) sum += lane_value(sum, x);
    if (lane_index() < runs) shared[(warp * Few + f) * width + place + v] = sum;
  }
  sync_block();
  for (int i = thread; i < Few * width; i += threads) {
    const int f = i / width, to = at.part * width + i % width;
    if (f >= at.count || to >= at.lines) continue;
    S sum = 0;
    KILN_UNROLL
    for (int w = 0; w < Warps; ++w) sum += shared[w * Few * width + i];
    at.store(result, sum, f, to);
  }
}

}  // namespace kiln::gpu

#pragma once
#include "kiln/backend/hip/kernels/gemm/epilogue.hpp"
#include "kiln/backend/hip/kernels/platform/elements.hpp"

namespace kiln::gpu {

/// A GEMM without tiles, for products that would fill little of one: thread `at` sums a run of `Result::width` results
/// that are neighbors in memory; threads count such runs of all `s.entries` of the batch, those along the run's
/// direction first. Factors come from the cache, since neighbors read the same; with `Joined` those of a whole run lie
/// together.
template <bool Joined, class T, class Result>
KILN_FN void gemm_untiled(const matrix_argument<T>& a, const matrix_argument<T>& b, const Result& result,
                          const gemm_sizes& s, int at) {
  constexpr int W = Result::width;
  constexpr bool along_rows = Result::along_rows;
  const int length = along_rows ? s.rows : s.cols, lines = along_rows ? s.cols : s.rows;
  const int runs = (length + W - 1) / W;
  const int across = at / runs, first = (at - across * runs) * W;
  const int entry = across / lines, line = across - entry * lines;
  if (entry >= s.entries) return;
  const int b0 = entry / s.inner_batch, b1 = entry - b0 * s.inner_batch;
  // the factor whose rows the run goes along, and the other, of which it reads one
  const matrix_argument<T>&many = along_rows ? a : b, &one = along_rows ? b : a;
  const auto entry_at = [&](const matrix_argument<T>& m, int row) {
    return m.base + (b0 * m.batch[0] + b1 * m.batch[1] + row * m.row_step);
  };
  const T *from = entry_at(many, first), *with = entry_at(one, line);
  const int count = length - first < W ? length - first : W;
  sum_t<T> sums[W] = {};
  for (int k = 0; k < s.depth; ++k) {
    const auto x = widen(*with);
    pack<T, W> y;
    if (Joined && count == W) {
      y = *reinterpret_cast<const pack<T, W>*>(from);
    } else {
      KILN_UNROLL
      for (int i = 0; i < W; ++i) y.at[i] = from[i < count ? i * many.row_step : 0];
    }
    KILN_UNROLL
    for (int i = 0; i < W; ++i) sums[i] += x * widen(y.at[i]);
    with += one.depth_step, from += many.depth_step;
  }
  apply_result(result, sums, result.place.at(b0, b1, along_rows ? first : line, along_rows ? line : first), count);
}

}  // namespace kiln::gpu

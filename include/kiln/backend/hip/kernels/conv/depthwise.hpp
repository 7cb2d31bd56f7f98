#pragma once
#include "kiln/backend/hip/kernels/conv/arguments.hpp"
#include "kiln/backend/hip/kernels/gemm/epilogue.hpp"
#include "kiln/backend/hip/kernels/platform/elements.hpp"

namespace kiln::gpu {

/// A convolution whose filters read a channel each. A thread makes `Outputs` neighbors of a row, for `Channels`
/// neighboring channels where these are contiguous.
template <int Channels, int Outputs, int KernelRows, int KernelCols, int StrideCols, int DilationCols>
struct depthwise_tile {
  static constexpr int channels = Channels, outputs = Outputs, kernel_rows = KernelRows, kernel_cols = KernelCols,
                       stride_cols = StrideCols, dilation_cols = DilationCols,
                       reach = (Outputs - 1) * StrideCols + (KernelCols - 1) * DilationCols + 1;
};

/// Thread `at` of the work; weights are [taps, channels]. `result` is as `apply_epilogue` takes it. Neighboring threads
/// work neighboring channels where a thread has several, otherwise neighboring places of a row.
template <class Tile, class T, class Result>
KILN_FN void depthwise(const T* x, const T* weights, const Result& result, const depthwise_sizes& s, i64 at) {
  using V = decltype(value_of(T{}));
  constexpr int C = Tile::channels, N = Tile::outputs;
  using run = pack<T, C>;
  const int runs = (s.out_cols + N - 1) / N, groups = s.channels / C;
  const auto taken = [&](int extent) {
    const i64 rest = at / extent;
    const int here = static_cast<int>(at - rest * extent);
    at = rest;
    return here;
  };
  int channel = C > 1 ? taken(groups) * C : 0;
  const int col0 = taken(runs) * N, row = taken(s.out_rows);
  if (C == 1) channel = taken(groups);
  const int image = static_cast<int>(at);
  const int top = row * s.stride_rows - s.pad_rows, left = col0 * Tile::stride_cols - s.pad_cols;
  const T* from = x + image * s.image_step + channel * s.channel_step;
  V sums[N][C] = {};
  KILN_NO_UNROLL
  for (int i = 0; i < Tile::kernel_rows; ++i) {
    const int r = top + i * s.dilation_rows;
    if (static_cast<u32>(r) >= static_cast<u32>(s.height)) continue;
    run w[Tile::kernel_cols];
    KILN_UNROLL
    for (int j = 0; j < Tile::kernel_cols; ++j)
      w[j] =
          *reinterpret_cast<const run*>(weights + (i * Tile::kernel_cols + j) * static_cast<i64>(s.channels) + channel);
    run in[Tile::reach];
    KILN_UNROLL
    for (int p = 0; p < Tile::reach; ++p) {
      const int c = left + p;
      in[p] = run{};
      if (static_cast<u32>(c) < static_cast<u32>(s.width))
        in[p] = *reinterpret_cast<const run*>(from + r * s.row_step + c * s.col_step);
    }
    KILN_UNROLL
    for (int o = 0; o < N; ++o) KILN_UNROLL
    for (int j = 0; j < Tile::kernel_cols; ++j) KILN_UNROLL
    for (int c = 0; c < C; ++c)
      sums[o][c] += value_of(in[o * Tile::stride_cols + j * Tile::dilation_cols].at[c]) * value_of(w[j].at[c]);
  }
  const int pixel = row * s.out_cols + col0, left_over = s.out_cols - col0;
  if constexpr (C > 1) {
    KILN_UNROLL
    for (int o = 0; o < N; ++o)
      if (o < left_over) apply_result(result, sums[o], position{image, 0, pixel + o, channel}, C);
  } else {
    constexpr int W = Result::width;
    KILN_UNROLL
    for (int o = 0; o < N; o += W) {
      V some[W];
      KILN_UNROLL
      for (int i = 0; i < W; ++i) some[i] = sums[o + i][0];
      const int count = left_over - o < W ? left_over - o : W;
      if (count > 0) apply_result(result, some, position{image, 0, pixel + o, channel}, count);
    }
  }
}

}  // namespace kiln::gpu

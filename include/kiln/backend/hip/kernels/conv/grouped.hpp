#pragma once
#include "kiln/backend/hip/kernels/conv/arguments.hpp"
#include "kiln/backend/hip/kernels/gemm/epilogue.hpp"
#include "kiln/backend/hip/kernels/platform/elements.hpp"

namespace kiln::gpu {

/// A convolution of few channels a group, forwards or transposed, by thread `at` of the work: `Tile.outputs` neighbors
/// of a row for `Tile.run` neighboring filters. Weights are [channels of a group, taps..., filters]. `result` is as
/// `apply_epilogue` takes it.
template <grouped_tile Tile, class T, class Result, class Index>
KILN_FN void grouped_convolution(const T* x, const T* weights, const Result& result, const grouped_sizes& s, Index at) {
  using V = decltype(value_of(T{}));
  constexpr int C = Tile.run, N = Tile.outputs, part = Tile.part, reach = Tile.reach();
  using run = pack<T, C>;
  const auto taken = [&](int extent) {
    const Index rest = at / extent;
    const int here = static_cast<int>(at - rest * extent);
    at = rest;
    return here;
  };
  int filter = 0;
  if constexpr (Tile.last) filter = taken(s.filters / C) * C;
  const int col = taken((s.out_cols + N - 1) / N) * N, row = taken(s.out_rows), plane = taken(s.out_planes);
  if constexpr (!Tile.last) filter = taken(s.filters);
  const int image = static_cast<int>(at);
  const int front = Tile.corner(plane, Tile.stride_planes, Tile.pad_planes),
            top = Tile.corner(row, Tile.stride_rows, Tile.pad_rows);
  const T* from = x + image * s.image_step + i64(filter / Tile.filters * Tile.depth) * s.channel_step;
  const T* taps = weights + filter;
  V sums[N][C] = {};
  KILN_NO_UNROLL
  for (int k = 0; k < Tile.depth * Tile.planes; ++k) {
    const int there = Tile.met(front, k % Tile.planes, Tile.stride_planes, Tile.dilation_planes);
    if (static_cast<u32>(there) >= static_cast<u32>(s.planes)) continue;
    const T* const lines = from + k / Tile.planes * s.channel_step + there * s.plane_step;
    KILN_NO_UNROLL
    for (int i = 0; i < Tile.rows; ++i) {
      const int line = Tile.met(top, i, Tile.stride_rows, Tile.dilation_rows);
      if (static_cast<u32>(line) >= static_cast<u32>(s.height)) continue;
      const T* const pixels = lines + line * s.row_step;
      const T* const row_taps = taps + i64((k * Tile.rows + i) * Tile.cols) * s.filters;
      KILN_NO_UNROLL
      for (int first = 0; first < Tile.cols; first += part) {
        run w[part] = {};
        KILN_UNROLL
        for (int j = 0; j < part; ++j)
          if (Tile.cols % part == 0 || first + j < Tile.cols)
            w[j] = *reinterpret_cast<const run*>(row_taps + i64(first + j) * s.filters);
        const int left = Tile.left(col) + first * Tile.dilation_cols;
        run in[reach];
        KILN_UNROLL
        for (int q = 0; q < reach; ++q) {
          in[q] = run{};
          if (static_cast<u32>(left + q) < static_cast<u32>(s.width))
            in[q] = *reinterpret_cast<const run*>(pixels + (left + q) * s.col_step);
        }
        KILN_UNROLL
        for (int j = 0; j < part; ++j) {
          if (Tile.cols % part != 0 && first + j >= Tile.cols) break;
          KILN_UNROLL
          for (int o = 0; o < N; ++o) {
            const int q = Tile.held(o, j);
            KILN_UNROLL
            for (int c = 0; c < C; ++c)
              if (q >= 0) sums[o][c] += value_of(in[q].at[c]) * value_of(w[j].at[c]);
          }
        }
      }
    }
  }
  const int pixel = (plane * s.out_rows + row) * s.out_cols + col, left_over = s.out_cols - col;
  if constexpr (C > 1) {
    KILN_UNROLL
    for (int o = 0; o < N; ++o)
      if (o < left_over) apply_result(result, sums[o], position{image, 0, pixel + o, filter}, C);
  } else {
    constexpr int W = Result::width;
    KILN_UNROLL
    for (int o = 0; o < N; o += W) {
      V some[W];
      KILN_UNROLL
      for (int i = 0; i < W; ++i) some[i] = sums[o + i][0];
      const int count = left_over - o < W ? left_over - o : W;
      if (count > 0) apply_result(result, some, position{image, 0, pixel + o, filter}, count);
    }
  }
}

}  // namespace kiln::gpu

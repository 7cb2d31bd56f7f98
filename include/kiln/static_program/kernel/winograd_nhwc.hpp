#pragma once
#include "kiln/kernel/conv/winograd/transform.hpp"
#include "kiln/static_program/kernel/conv_nhwc.hpp"

// Static programs instantiate this text, and exported programs contain it: it needs vectors and nothing else.
namespace kiln::kernels {

/// Extents and element steps, as constants, of a convolution with 3x3 weights and stride 1 of an image whose channels
/// are last, a multiple of 16, by Winograd: each tile of `outputs` x `outputs` results takes (outputs + 2)^2
/// products.
struct winograd_nhwc_extents {
  std::int64_t channels = 16, filters = 1, height = 1, width = 1, out_height = 1, out_width = 1, top = 0, left = 0;
  std::int64_t x_row = 0, x_column = 0;
  int outputs = 2;

  constexpr std::int64_t side() const { return outputs + 2; }
  constexpr std::int64_t points() const { return side() * side(); }
  constexpr std::int64_t tile_columns() const { return (out_width + outputs - 1) / outputs; }
  constexpr std::int64_t tiles() const { return (out_height + outputs - 1) / outputs * tile_columns(); }
  /// Tiles that run together: enough of them to use a weight often, few enough for L2. The last
  /// block overlaps the one before it.
  constexpr std::int64_t block() const {
    constexpr std::int64_t most_elements = 288 * 1024;
    const std::int64_t fitting = most_elements / (points() * (channels + panel_columns));
    const std::int64_t most = fitting < 24 ? 24 : fitting > 60 ? 60 : fitting;
    const std::int64_t blocks = (tiles() + most - 1) / most;
    return (tiles() + blocks - 1) / blocks;
  }
  constexpr std::int64_t inputs() const { return points() * block() * channels; }
  /// Elements of memory: transformed inputs, then sums.
  constexpr std::int64_t memory() const { return inputs() + points() * block() * panel_columns; }
  /// Elements of the transformed weights: [panel][point][channel][column].
  constexpr std::int64_t weights() const { return points() * channels * ((filters + 15) / 16 * 16); }
};

/// One tile of inputs becomes the factors of its products; what lies outside the image is zero.
template <winograd_nhwc_extents P, int Lanes, class T>
KILN_FN void transform_image_tile(const T* x, T* to, std::int64_t y0, std::int64_t x0) {
  using V = vec<T, Lanes>;
  constexpr int side = static_cast<int>(P.side());
  constexpr std::int64_t point = P.block() * P.channels;
  const auto each_channel = [&](auto get) __attribute__((always_inline)) {
    for (std::int64_t c = 0; c < P.channels; c += Lanes) {
      V half[side][side];
#pragma GCC unroll 6
      for (int j = 0; j < side; ++j) {
        V d[side], t[side];
#pragma GCC unroll 6
        for (int i = 0; i < side; ++i) d[i] = get(i, j, c);
        winograd_transform<P.outputs>::input(d, t);
#pragma GCC unroll 6
        for (int i = 0; i < side; ++i) half[i][j] = t[i];
      }
#pragma GCC unroll 6
      for (int i = 0; i < side; ++i) {
        V t[side];
        winograd_transform<P.outputs>::input(half[i], t);
#pragma GCC unroll 6
        for (int j = 0; j < side; ++j) store(to + (i * side + j) * point + c, t[j]);
      }
    }
  };
  const T* const corner = x + y0 * P.x_row + x0 * P.x_column;
  if (y0 >= 0 && x0 >= 0 && y0 + side <= P.height && x0 + side <= P.width) {
    each_channel([&](int i, int j, std::int64_t c)
                     __attribute__((always_inline)) { return load<V>(corner + i * P.x_row + j * P.x_column + c); });
  } else {
    bool row[side], column[side];
    for (int i = 0; i < side; ++i) {
      row[i] = y0 + i >= 0 && y0 + i < P.height;
      column[i] = x0 + i >= 0 && x0 + i < P.width;
    }
    each_channel([&](int i, int j, std::int64_t c) __attribute__((always_inline)) {
      return row[i] && column[j] ? load<V>(corner + i * P.x_row + j * P.x_column + c) : V{};
    });
  }
}

/// The results of one tile for Columns filters from their sums: `put(row in the tile, column, filter's distance,
/// std::integral_constant<int, N>, vector)`.
template <winograd_nhwc_extents P, int Lanes, std::int64_t Columns, class T, class Put>
KILN_FN void untransform_image_tile(const T* sums, Put&& put) {
  using V = vec<T, Lanes>;
  constexpr int side = static_cast<int>(P.side()), outputs = P.outputs;
  constexpr std::int64_t point = P.block() * panel_columns;
  const auto vector = [&]<int N>(std::int64_t f, std::integral_constant<int, N> count) __attribute__((always_inline)) {
    V half[outputs][side];
#pragma GCC unroll 6
    for (int j = 0; j < side; ++j) {
      V m[side], y[outputs];
#pragma GCC unroll 6
      for (int i = 0; i < side; ++i) m[i] = load<V>(sums + (i * side + j) * point + f);
      winograd_transform<outputs>::output(m, y);
#pragma GCC unroll 4
      for (int i = 0; i < outputs; ++i) half[i][j] = y[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < outputs; ++i) {
      V y[outputs];
      winograd_transform<outputs>::output(half[i], y);
#pragma GCC unroll 4
      for (int j = 0; j < outputs; ++j) put(i, j, f, count, y[j]);
    }
  };
  constexpr std::int64_t whole = Columns / Lanes * Lanes;
  for (std::int64_t f = 0; f < whole; f += Lanes) vector(f, std::integral_constant<int, Lanes>{});
  if constexpr (whole != Columns) vector(whole, std::integral_constant<int, static_cast<int>(Columns - whole)>{});
}

/// The convolution of one image by Winograd F(2x2, 3x3) or F(4x4, 3x3) (Lavin and Gray, "Fast Algorithms for
/// Convolutional Neural Networks", 2016): `put(row, column, filter, std::integral_constant<int, N>, sums)` takes the
/// sums of N filters of a pixel, some pixels twice. `memory` holds `P.memory()` elements.
template <winograd_nhwc_extents P, int Lanes, int Registers, class T, class Put>
KILN_FN void static_winograd_nhwc(const T* x, const T* weights, T* memory, Put&& put) {
  constexpr std::int64_t block = P.block(), tiles = P.tiles();
  T* const inputs = memory;
  T* const sums = memory + P.inputs();
  for (std::int64_t at = 0; at < tiles; at += block) {
    const std::int64_t first = at + block <= tiles ? at : tiles - block;
    const auto row_of = [&](std::int64_t t) { return (first + t) / P.tile_columns() * P.outputs; };
    const auto column_of = [&](std::int64_t t) { return (first + t) % P.tile_columns() * P.outputs; };
    for (std::int64_t t = 0; t < block; ++t)
      transform_image_tile<P, Lanes>(x, inputs + t * P.channels, row_of(t) - P.top, column_of(t) - P.left);
    const auto panel = [&]<std::int64_t Columns>(std::int64_t filter) {
      constexpr std::int64_t pitch = (Columns + 15) / 16 * 16;
      constexpr product_extents extents{block, pitch, P.channels, P.channels, 1, pitch, true, P.channels * pitch};
      const T* b = weights + filter * P.points() * P.channels;
      for (std::int64_t point = 0; point < P.points(); ++point, b += P.channels * pitch) {
        T* const to = sums + point * block * panel_columns;
        static_product<extents, Lanes, Registers>(
            inputs + point * block * P.channels, b,
            [&](std::int64_t t, std::int64_t f, auto, vec<T, Lanes> v) { store(to + t * panel_columns + f, v); });
      }
      for (std::int64_t t = 0; t < block; ++t) {
        const std::int64_t y0 = row_of(t), x0 = column_of(t);
        untransform_image_tile<P, Lanes, Columns>(
            sums + t * panel_columns, [&](std::int64_t i, std::int64_t j, std::int64_t f, auto count, vec<T, Lanes> v) {
              if ((P.out_height % P.outputs == 0 || y0 + i < P.out_height) &&
                  (P.out_width % P.outputs == 0 || x0 + j < P.out_width))
                put(y0 + i, x0 + j, filter + f, count, v);
            });
      }
    };
    constexpr std::int64_t whole = P.filters / panel_columns * panel_columns;
    for (std::int64_t f = 0; f < whole; f += panel_columns) panel.template operator()<panel_columns>(f);
    if constexpr (whole != P.filters) panel.template operator()<P.filters - whole>(whole);
  }
}

}  // namespace kiln::kernels

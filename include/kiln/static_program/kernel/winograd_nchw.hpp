#pragma once
#include <cstdint>
#include <type_traits>

#include "kiln/kernel/simd/transpose_square.hpp"
#include "kiln/static_program/kernel/product.hpp"

// Static programs instantiate this text, and exported programs contain it: it needs vectors and nothing else.
namespace kiln::kernels {

/// Extents and element steps of a convolution of planes with 3x3 weights and stride 1 as constants. Channels and
/// filters are multiples of 16, columns are contiguous; with `halved` the result is the maximum of 2x2 windows.
struct winograd_nchw_extents {
  std::int64_t channels = 16, filters = 16, height = 1, width = 1, out_height = 1, out_width = 1, top = 0, left = 0;
  std::int64_t x_channel = 1, x_row = 1, y_channel = 1, y_row = 1;
  bool halved = false;

  static constexpr std::int64_t points = 16;  ///< products for a tile of 2x2 results
  constexpr std::int64_t tile_rows() const { return (out_height + 1) / 2; }
  constexpr std::int64_t tile_columns() const { return (out_width + 1) / 2; }
  /// Rows of tiles that run together: enough tiles to use a weight often, few enough for the caches.
  constexpr std::int64_t block() const {
    std::int64_t rows = 1;
    while (rows < tile_rows() && (rows * tile_columns() < 16 || tile_rows() % rows != 0)) ++rows;
    return rows;
  }
  constexpr std::int64_t tiles() const { return block() * tile_columns(); }
  constexpr std::int64_t group() const { return filters % 64 == 0 ? 64 : filters % 32 == 0 ? 32 : 16; }

  // the parts of the memory that it takes, in elements
  constexpr std::int64_t strip_pitch() const { return 2 * tile_columns() + 2; }
  constexpr std::int64_t strip() const { return (2 * block() + 2) * strip_pitch() * channels; }
  constexpr std::int64_t inputs() const { return points * tiles() * channels; }
  constexpr std::int64_t sums() const { return points * tiles() * group(); }
  constexpr std::int64_t memory() const { return strip() + inputs() + sums() + 4 * tiles() * 16; }
  /// Elements of the transformed weights, [point][channel][filter].
  constexpr std::int64_t weights() const { return points * channels * filters; }
};

/// The image's rows that a block of tiles reads, NHWC, between zeros.
template <winograd_nchw_extents P, int Lanes, class T>
KILN_FN void fill_strip(const T* x, T* strip, std::int64_t first_tile_row) {
  using V = vec<T, Lanes>;
  const std::int64_t y0 = 2 * first_tile_row - P.top, rows = 2 * P.block() + 2;
  const std::int64_t begin = y0 < 0 ? 0 : y0, end = y0 + rows < P.height ? y0 + rows : P.height;
  for (std::int64_t i = 0; i < P.strip(); i += Lanes) store(strip + i, V{});
  constexpr bool joined = P.x_row == P.width;  // all rows are one run
  const std::int64_t runs = joined ? 1 : end - begin, count = joined ? (end - begin) * P.width : P.width;
  const auto turn = [&](std::int64_t run, std::int64_t at, int n) {
    for (std::int64_t c = 0; c < P.channels; c += Lanes) {
      const T* const from = x + c * P.x_channel + (begin + run) * P.x_row + at;
      V square[Lanes];
#pragma GCC unroll 16
      for (int r = 0; r < Lanes; ++r)
        square[r] = n == Lanes ? load<V>(from + r * P.x_channel) : load_n<V>(from + r * P.x_channel, n);
      transpose_square<Lanes>(square);
      T* const to = strip + ((begin + run - y0) * P.strip_pitch() + P.left) * P.channels + c;
#pragma GCC unroll 16
      for (int p = 0; p < Lanes; ++p)
        if (p < n) store(to + ((at + p) / P.width * P.strip_pitch() + (at + p) % P.width) * P.channels, square[p]);
    }
  };
  const std::int64_t whole = count / Lanes * Lanes;
  for (std::int64_t run = 0; run < runs; ++run) {
    for (std::int64_t at = 0; at < whole; at += Lanes) turn(run, at, Lanes);
    if (whole != count) turn(run, whole, static_cast<int>(count - whole));
  }
}

/// Input tiles of 4x4 become the factors of their products.
template <winograd_nchw_extents P, int Lanes, class T> KILN_FN void transform_inputs(const T* strip, T* inputs) {
  using V = vec<T, Lanes>;
  for (std::int64_t tile = 0; tile < P.tiles(); ++tile) {
    const T* const corner =
        strip + (2 * (tile / P.tile_columns()) * P.strip_pitch() + 2 * (tile % P.tile_columns())) * P.channels;
    for (std::int64_t c = 0; c < P.channels; c += Lanes) {
      V t[4][4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        V d[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) d[i] = load<V>(corner + (i * P.strip_pitch() + j) * P.channels + c);
        t[0][j] = d[0] - d[2], t[1][j] = d[1] + d[2], t[2][j] = d[2] - d[1], t[3][j] = d[1] - d[3];
      }
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const V all[4] = {t[i][0] - t[i][2], t[i][1] + t[i][2], t[i][2] - t[i][1], t[i][1] - t[i][3]};
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) store(inputs + ((4 * i + j) * P.tiles() + tile) * P.channels + c, all[j]);
      }
    }
  }
}

/// Results of one vector of filters from their sums: `epilogue(vector)` completes them, `greater` joins those of a
/// window.
template <winograd_nchw_extents P, int Lanes, class T, class Epilogue, class Greater>
KILN_FN void transform_sums(const T* sums, T* results, Epilogue&& epilogue, Greater&& greater) {
  using V = vec<T, Lanes>;
  for (std::int64_t tile = 0; tile < P.tiles(); ++tile) {
    V t[2][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      V m[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) m[i] = load<V>(sums + ((4 * i + j) * P.tiles() + tile) * P.group());
      t[0][j] = m[0] + (m[1] + m[2]), t[1][j] = (m[1] - m[2]) - m[3];
    }
    V y[2][2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i)
      y[i][0] = epilogue(t[i][0] + (t[i][1] + t[i][2])), y[i][1] = epilogue((t[i][1] - t[i][2]) - t[i][3]);
    if constexpr (P.halved) {
      store(results + tile * Lanes, greater(greater(y[0][0], y[0][1]), greater(y[1][0], y[1][1])));
    } else {
      const std::int64_t row = tile / P.tile_columns(), column = tile % P.tile_columns();
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i)
#pragma GCC unroll 2
        for (int j = 0; j < 2; ++j)
          if (2 * column + j < P.out_width)
            store(results + ((2 * row + i) * P.out_width + 2 * column + j) * Lanes, y[i][j]);
    }
  }
}

/// Results of one vector of filters go to their planes.
template <winograd_nchw_extents P, int Lanes, class T>
KILN_FN void store_planes(const T* results, T* y, std::int64_t first_tile_row) {
  using V = vec<T, Lanes>;
  constexpr std::int64_t scale = P.halved ? 1 : 2, height = P.halved ? P.tile_rows() : P.out_height,
                         width = P.halved ? P.tile_columns() : P.out_width;
  const std::int64_t begin = scale * first_tile_row, most = height - begin,
                     rows = height % (scale * P.block()) == 0 || scale * P.block() < most ? scale * P.block() : most;
  constexpr bool joined = P.y_row == width;
  const std::int64_t runs = joined ? 1 : rows, count = joined ? rows * width : width, whole = count / Lanes * Lanes;
  const auto turn = [&](std::int64_t run, std::int64_t at, int n) {
    V square[Lanes];
#pragma GCC unroll 16
    for (int p = 0; p < Lanes; ++p) square[p] = p < n ? load<V>(results + (run * width + at + p) * Lanes) : V{};
    transpose_square<Lanes>(square);
    T* const to = y + (begin + run) * P.y_row + at;
#pragma GCC unroll 16
    for (int r = 0; r < Lanes; ++r) {
      if (n == Lanes)
        store(to + r * P.y_channel, square[r]);
      else
        store_n(to + r * P.y_channel, square[r], n);
    }
  };
  for (std::int64_t run = 0; run < runs; ++run) {
    for (std::int64_t at = 0; at < whole; at += Lanes) turn(run, at, Lanes);
    if (whole != count) turn(run, whole, static_cast<int>(count - whole));
  }
}

/// The convolution of one image by Winograd F(2x2, 3x3) (S. Winograd, "Arithmetic Complexity of Computations",
/// 1980; Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016): 16 products for four results
/// instead of 36. `epilogue(filter, vector)` completes the results of the filters from `filter` on.
template <winograd_nchw_extents P, int Lanes, int Registers, class T, class Epilogue, class Greater>
KILN_FN void static_winograd_nchw(const T* x, const T* weights, T* y, T* memory, Epilogue&& epilogue,
                                  Greater&& greater) {
  T* const strip = memory;
  T* const inputs = strip + P.strip();
  T* const sums = inputs + P.inputs();
  T* const results = sums + P.sums();
  constexpr product_extents extents{P.tiles(), P.group(), P.channels, P.channels, 1, P.filters, true};
  const auto block = [&](std::int64_t row) {
    fill_strip<P, Lanes>(x, strip, row);
    transform_inputs<P, Lanes>(strip, inputs);
    for (std::int64_t first = 0; first < P.filters; first += P.group()) {
      for (std::int64_t point = 0; point < P.points; ++point) {
        T* const to = sums + point * P.tiles() * P.group();
        static_product<extents, Lanes, Registers>(inputs + point * P.tiles() * P.channels,
                                                  weights + point * P.channels * P.filters + first,
                                                  [&](std::int64_t tile, std::int64_t filter, auto, vec<T, Lanes> v) {
                                                    store(to + tile * P.group() + filter, v);
                                                  });
      }
      for (std::int64_t f = 0; f < P.group(); f += Lanes) {
        transform_sums<P, Lanes>(
            sums + f, results, [&](vec<T, Lanes> v) { return epilogue(first + f, v); }, greater);
        store_planes<P, Lanes>(results, y + (first + f) * P.y_channel, row);
      }
    }
  };
  if constexpr (P.block() == P.tile_rows())  // its edges are constants
    block(0);
  else
    for (std::int64_t row = 0; row < P.tile_rows(); row += P.block()) block(row);
}

}  // namespace kiln::kernels

#pragma once

#include "kiln/kernel/conv/problem.hpp"
#include "kiln/kernel/gemm/tile.hpp"

namespace kiln::kernels {

/// Where the windows of NHWC pixels lie, in elements: a window's taps, and the next pixel's window.
struct window_walk {
  std::int64_t kernel_rows, kernel_cols, channels;
  std::ptrdiff_t tap_row, tap_col;      ///< to the next tap
  std::ptrdiff_t pixel_row, pixel_col;  ///< to the window of the next pixel
};

/// A register tile of one vector of output channels: Rows rows of Cols adjacent pixels, whose windows begin at `a`. A
/// pixel's input is an address that four pixels share plus a multiple of their distance, so that the inner loop needs
/// no table of offsets and no pointer for each pixel: where a group has few outputs, those take longer than the
/// products. `b`: packed weights of one vector a product; `ahead`: memory that is prefetched meanwhile.
template <class T, int Rows, int Cols>
[[gnu::noinline]] void multiply_windows(const window_walk& w, const T* a, const T* b, T* c, std::ptrdiff_t c_step,
                                        int cols, fetch_ahead ahead, const tile_epilogue<T>* epilogue) {
  using V = native_vec<T>;
  constexpr int lanes = native_lanes<T>, count = Rows * Cols, quads = (Cols + 3) / 4, unrolled = 4;
  V sum[count][1];
#pragma GCC unroll 16
  for (int i = 0; i < count; ++i) sum[i][0] = V{};
  const std::ptrdiff_t step = w.pixel_col, steps[4] = {0, step, 2 * step, 3 * step};
  const bool apart = ahead.step > 64 / unrolled;
  for (std::int64_t y = 0; y < w.kernel_rows; ++y)
    for (std::int64_t x = 0; x < w.kernel_cols; ++x) {
      const T* quad[Rows][quads];
#pragma GCC unroll 2
      for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
        for (int q = 0; q < quads; ++q) quad[r][q] = a + y * w.tap_row + x * w.tap_col + r * w.pixel_row + 4 * q * step;
      const auto add = [&](int k) __attribute__((always_inline)) {
        const V right = load<V>(b + k * lanes);
#pragma GCC unroll 2
        for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
          for (int i = 0; i < Cols; ++i) {
            V& to = sum[r * Cols + i][0];
            to = multiply_add(broadcast<V>(quad[r][i / 4][steps[i % 4] + k]), right, to);
          }
      };
      const auto advance = [&](int by) __attribute__((always_inline)) {
        b += by * lanes;
#pragma GCC unroll 2
        for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
          for (int q = 0; q < quads; ++q) quad[r][q] += by;
      };
      std::int64_t k = 0;
      for (; k + unrolled <= w.channels; k += unrolled) {
        __builtin_prefetch(ahead.at, 0, 2);
        if (apart)
          for (int i = 1; i < unrolled; ++i) __builtin_prefetch(ahead.at + i * ahead.step, 0, 2);
        ahead.at += unrolled * ahead.step;
#pragma GCC unroll 4
        for (int i = 0; i < unrolled; ++i) add(i);
        advance(unrolled);
      }
      for (; k < w.channels; ++k) add(0), advance(1);
    }
  if (epilogue) apply_epilogue<T, count, 1>(sum, *epilogue, cols);
#pragma GCC unroll 16
  for (int i = 0; i < count; ++i)
    if (cols == lanes)
      store(c + i * c_step, sum[i][0]);
    else
      store_n(c + i * c_step, sum[i][0], cols);
  if (epilogue && epilogue->then) activate(epilogue->then, c, c_step, count, cols);
}

/// The tiles of a level, by rows and columns.
template <class T> class window_tiles {
 public:
  /// Pixels of a tile: sums, weights and a temporary fit the registers, and hide the latency of a sum.
  static constexpr int most = native_bytes == 64 ? 14 : 10;
  using function = void (*)(const window_walk&, const T*, const T*, T*, std::ptrdiff_t, int, fetch_ahead,
                            const tile_epilogue<T>*);

  /// Rows of images `width` wide that a tile takes: of narrow ones two whole rows.
  static int rows(std::int64_t width) { return 2 * width <= most ? 2 : 1; }
  /// `cols` <= most / rows.
  static function find(int rows, int cols) {
    return rows == 2 ? two[static_cast<std::size_t>(cols - 1)] : one[static_cast<std::size_t>(cols - 1)];
  }

 private:
  template <int Rows, int... I> static constexpr auto make(std::integer_sequence<int, I...>) {
    return std::array<function, sizeof...(I)>{multiply_windows<T, Rows, I + 1>...};
  }
  static constexpr auto one = make<1>(std::make_integer_sequence<int, most>{});
  static constexpr auto two = make<2>(std::make_integer_sequence<int, most / 2>{});
};

}  // namespace kiln::kernels

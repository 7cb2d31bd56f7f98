#pragma once

#include <algorithm>

#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/kernel/gemm/tile.hpp"

namespace kiln::kernels {

/// Channels-last images of which a depthwise convolution of a square kernel of odd side reads and writes rows.
template <class T> struct depthwise_rows {
  const T* input = nullptr;  ///< pixel (0, 0), at the first channel of a vector
  std::ptrdiff_t in_row = 0, in_step = 0;
  std::int64_t height = 0, width = 0;  ///< of the input
  std::int64_t top = 0, left = 0;      ///< padding
  const T* weights = nullptr;          ///< [taps, weight_step]
  std::ptrdiff_t weight_step = 0;
  T* output = nullptr;  ///< pixel (0, 0)
  std::ptrdiff_t out_row = 0, out_step = 0;
  std::int64_t out_width = 0;
  int channels = 0;  ///< that count in the vector
};

/// A depthwise convolution of one vector of channels: some rows and pixels at a time stay in registers, so that an
/// input vector is loaded once for all their taps, and the next rows are prefetched meanwhile.
template <class T, int Side, int Stride> class depthwise_block {
  using V = native_vec<T>;
  // as many as fit the registers with the inputs of a row
  static constexpr int pixels = native_bytes == 64 || (native_bytes == 32 && Side == 3 && Stride == 1) ? 4 : 2;

 public:
  /// Rows of outputs computed at a time.
  static constexpr int most_rows = 2;

  /// Output rows [y, y + Rows), all pixels. `epilogue`, where it is not null, is that of the rows' first pixel and the
  /// vector's first channel, without a bias for each pixel. `ahead`: where the rows that are read next begin, perhaps
  /// those of other channels.
  template <int Rows>
  static void run(const depthwise_rows<T>& p, std::int64_t y, const tile_epilogue<T>* epilogue, const T* ahead) {
    // Tiles of pixels in [inner, inner_end) read no padding at the sides.
    const std::int64_t inner = std::min(p.out_width, ceil_div(p.left, Stride));
    const std::int64_t room = p.width + p.left - Side;
    const std::int64_t inner_end = room < 0 ? inner : std::clamp(room / Stride + 1, inner, p.out_width);
    std::int64_t x = 0;
    if (p.channels == native_lanes<T>) {
      for (; x < inner; x += pixels) tile<Rows, true, true>(p, y, x, epilogue, ahead);
      for (; x + pixels <= inner_end; x += pixels) tile<Rows, false, true>(p, y, x, epilogue, ahead);
      for (; x < p.out_width; x += pixels) tile<Rows, true, true>(p, y, x, epilogue, ahead);
    } else {
      for (; x < p.out_width; x += pixels) tile<Rows, true, false>(p, y, x, epilogue, ahead);
    }
  }

 private:
  template <int Rows, bool Edge, bool Whole>
  [[gnu::noinline]] static void tile(const depthwise_rows<T>& p, std::int64_t y, std::int64_t x,
                                     const tile_epilogue<T>* epilogue, const T* ahead) {
    constexpr int in_rows = (Rows - 1) * Stride + Side, in_pixels = (pixels - 1) * Stride + Side;
    const std::int64_t y0 = y * Stride - p.top, x0 = x * Stride - p.left;
    V sum[Rows][pixels][1];
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < pixels; ++i) sum[r][i][0] = V{};
    const T* row = p.input + y0 * p.in_row + x0 * p.in_step;
    ahead += x0 * p.in_step;
#pragma GCC unroll 12
    for (int i = 0; i < in_rows; ++i, row += p.in_row) {
      if (y0 + i < 0 || y0 + i >= p.height) continue;
      V in[in_pixels];
#pragma GCC unroll 16
      for (int j = 0; j < in_pixels; ++j) {
        const bool inside = !Edge || (x0 + j >= 0 && x0 + j < p.width);
        in[j] = !inside ? V{} : Whole ? load<V>(row + j * p.in_step) : load_n<V>(row + j * p.in_step, p.channels);
      }
#pragma GCC unroll 2
      for (int r = 0; r < Rows; ++r) {
        const int ky = i - r * Stride;
        if (ky < 0 || ky >= Side) continue;
#pragma GCC unroll 8
        for (int kx = 0; kx < Side; ++kx) {
          const V w = load<V>(p.weights + (ky * Side + kx) * p.weight_step);
#pragma GCC unroll 4
          for (int j = 0; j < pixels; ++j) sum[r][j][0] = multiply_add(in[j * Stride + kx], w, sum[r][j][0]);
        }
      }
    }
    if (!Edge && ahead) {
#pragma GCC unroll 4
      for (int r = 0; r < Rows * Stride; ++r)
#pragma GCC unroll 8
        for (int j = 0; j < pixels * Stride; ++j) __builtin_prefetch(ahead + r * p.in_row + j * p.in_step);
    }
    const std::int64_t count = Edge ? std::min<std::int64_t>(pixels, p.out_width - x) : pixels;
    T* out = p.output + y * p.out_row + x * p.out_step;
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r, out += p.out_row) {
      if (epilogue) {
        tile_epilogue<T> own = *epilogue;
        own.advance(r * p.out_width + x);
        if (own.addend && count < pixels) {
          // rows past the last pixel may lie outside the addend
#pragma GCC unroll 4
          for (int j = 0; j < pixels; ++j)
            if (j < count) sum[r][j][0] += load_n<V>(own.addend + j * own.addend_row, p.channels);
          own.addend = nullptr;
        }
        apply_epilogue<T, pixels, 1>(sum[r], own, p.channels);
      }
#pragma GCC unroll 4
      for (int j = 0; j < pixels; ++j) {
        if (Edge && j >= count) break;
        Whole ? store(out + j * p.out_step, sum[r][j][0]) : store_n(out + j * p.out_step, sum[r][j][0], p.channels);
      }
      if (epilogue && epilogue->then) activate(epilogue->then, out, p.out_step, count, p.channels);
    }
  }
};

}  // namespace kiln::kernels

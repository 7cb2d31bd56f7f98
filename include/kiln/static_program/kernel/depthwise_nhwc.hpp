#pragma once
#include "kiln/static_program/kernel/conv_nhwc.hpp"

// Static programs instantiate this text, and exported programs contain it: it needs vectors and nothing else.
namespace kiln::kernels {

/// The depthwise convolution of one image in NHWC, each with weights of its own, packed as
/// [kernel row][kernel column][channels up to a multiple of 16]: `put(row, column, channel,
/// std::integral_constant<int, N>, sums)` takes the sums of N channels of a pixel. Vectors run over channels; a few
/// pixels side by side share each load of the weights.
template <window_extents P, int Lanes, int Pixels, class T, class Put>
KILN_FN void static_depthwise_nhwc(const T* x, const T* weights, Put&& put) {
  using V = vec<T, Lanes>;
  constexpr std::int64_t pitch = (P.channels + 15) / 16 * 16;
  // columns [inner, inner_end) read inside the image at every tap
  constexpr std::int64_t most = P.out_width, reach = P.width + P.left - P.span_columns();
  constexpr std::int64_t before = (P.left + P.column_stride - 1) / P.column_stride,
                         inner = before < most ? before : most;
  constexpr std::int64_t end = reach < 0 ? inner : reach / P.column_stride + 1, inner_end = end < inner  ? inner
                                                                                            : end < most ? end
                                                                                                         : most;
  const auto pixels = [&]<int Count, int N>(std::int64_t row, std::int64_t column, std::int64_t c,
                                            std::integral_constant<int, N> lanes_used) __attribute__((always_inline)) {
    V sum[Count];
#pragma GCC unroll 8
    for (int p = 0; p < Count; ++p) sum[p] = V{};
    const std::int64_t y0 = row * P.row_stride - P.top, x0 = column * P.column_stride - P.left;
    for (std::int64_t i = 0; i < P.kernel_rows; ++i) {
      const std::int64_t y = y0 + i * P.row_dilation;
      if (y < 0 || y >= P.height) continue;
      const auto tap = [&](std::int64_t j) __attribute__((always_inline)) {
        const V weight = load<V>(weights + (i * P.kernel_columns + j) * pitch + c);
        const T* const at = x + y * P.x_row + (x0 + j * P.column_dilation) * P.x_column + c;
#pragma GCC unroll 8
        for (int p = 0; p < Count; ++p) {
          const T* const from = at + p * P.column_stride * P.x_column;
          sum[p] = multiply_add(N == Lanes ? load<V>(from) : load_n<V>(from, N), weight, sum[p]);
        }
      };
      if constexpr (Count > 1) {
#pragma GCC unroll 3
        for (std::int64_t j = 0; j < P.kernel_columns; ++j) tap(j);
      } else {
        for (std::int64_t j = 0; j < P.kernel_columns; ++j)
          if (const std::int64_t at = x0 + j * P.column_dilation; at >= 0 && at < P.width) tap(j);
      }
    }
#pragma GCC unroll 8
    for (int p = 0; p < Count; ++p) put(row, column + p, c, lanes_used, sum[p]);
  };
  const auto line = [&](std::int64_t row, std::int64_t c, auto count) __attribute__((always_inline)) {
    std::int64_t column = 0;
    for (; column < inner; ++column) pixels.template operator()<1>(row, column, c, count);
    if constexpr (inner_end - inner >= Pixels)
      for (; column + Pixels <= inner_end; column += Pixels) pixels.template operator()<Pixels>(row, column, c, count);
    if constexpr ((inner_end - inner) % Pixels >= 2)
      for (; column + 2 <= inner_end; column += 2) pixels.template operator()<2>(row, column, c, count);
    for (; column < P.out_width; ++column) pixels.template operator()<1>(row, column, c, count);
  };
  constexpr std::int64_t whole = P.channels / Lanes * Lanes;
  for (std::int64_t row = 0; row < P.out_height; ++row) {
    for (std::int64_t c = 0; c < whole; c += Lanes) line(row, c, std::integral_constant<int, Lanes>{});
    if constexpr (whole != P.channels)
      line(row, whole, std::integral_constant<int, static_cast<int>(P.channels - whole)>{});
  }
}

}  // namespace kiln::kernels

#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kiln/kernel/gemm/tile.hpp"

namespace kiln::kernels {

/// The most common epilogue, in place: c = then(clamp(c * factor + offset + biases + addend)), each part optional. NaN
/// stays.
template <class T> struct affine_epilogue {
  T factor = 1;  ///< of matrix products alone: convolutions have it in their weights
  T offset = 0;
  const T* col_bias[2] = {};
  const T* row_bias = nullptr;  ///< of row `row % row_period`
  std::int64_t row_period = 1;
  const T* addend = nullptr;  ///< element (row, col) at row * addend_row + col
  std::ptrdiff_t addend_row = 0;
  bool clamps = false;
  T low = -std::numeric_limits<T>::infinity(), high = std::numeric_limits<T>::infinity();
  activation then{};

  /// Fills `to` for the tile of rows [row0, row0 + rows) and columns from `col0`; false where its rows pass the end of
  /// a period, and where there is an activation that `to` does not apply.
  bool in_registers(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t, tile_epilogue<T>& to) const {
    const std::int64_t first = !row_bias ? 0 : row0 < row_period ? row0 : row0 % row_period;
    if (row_bias && row_period != 1 && first + rows > row_period) return false;
    if (then && !to.activates) return false;
    to.factor = factor;
    to.offset = offset + (row_bias && row_period == 1 ? row_bias[0] : T(0));
    for (int i = 0; i < 2; ++i) to.col_bias[i] = col_bias[i] ? col_bias[i] + col0 : nullptr;
    to.row_bias = row_bias && row_period != 1 ? row_bias + first : nullptr;
    to.addend = addend ? addend + row0 * addend_row + col0 : nullptr;
    to.addend_row = addend_row;
    to.clamps = clamps;
    to.low = low, to.high = high;
    to.then = then;
    return true;
  }

  /// Applies itself to rows [row0, row0 + rows) at columns [col0, col0 + cols); c is element (row0, col0).
  KILN_FN void operator()(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, T* c,
                          std::ptrdiff_t c_row) const {
    using V = native_vec<T>;
    constexpr std::int64_t n = native_lanes<T>;
    const V least = broadcast<V>(low), most = broadcast<V>(high);
    for (std::int64_t r = 0; r < rows; ++r) {
      T* const out = c + r * c_row;
      const V of_row = broadcast<V>(offset + (row_bias ? row_bias[(row0 + r) % row_period] : T(0)));
      const T* const more = addend ? addend + (row0 + r) * addend_row + col0 : nullptr;
      const auto apply = [&](V x, auto read, std::int64_t j) {
        if (factor != 1) x *= broadcast<V>(factor);
        x += of_row;
        for (const T* bias : col_bias)
          if (bias) x += read(bias + col0 + j);
        if (more) x += read(more + j);
        // comparisons that NaN fails, so that it stays
        if (clamps) {
          x = select(x < least, least, x);
          x = select(x > most, most, x);
        }
        return x;
      };
      std::int64_t j = 0;
      for (; j + n <= cols; j += n)
        store(out + j, apply(
                           load<V>(out + j), [](const T* p) { return load<V>(p); }, j));
      if (j < cols) {
        const int rest = static_cast<int>(cols - j);
        store_n(out + j,
                apply(
                    load_n<V>(out + j, rest), [rest](const T* p) { return load_n<V>(p, rest); }, j),
                rest);
      }
    }
    if (then) activate(then, c, c_row, rows, cols);
  }
};

/// The same after a convolution: rows are channels of all images, or pixels of all images where the output is NHWC.
template <class T> struct affine_conv_epilogue {
  const affine_epilogue<T>& epilogue;
  std::int64_t channels;
  bool nhwc;

  void operator()(std::int64_t image, std::int64_t channel0, std::int64_t count, std::int64_t pixel0,
                  std::int64_t pixels, T* c, std::ptrdiff_t c_row) const {
    if (nhwc)
      epilogue(pixel0, pixels, channel0, count, c, c_row);
    else
      epilogue(image * channels + channel0, count, pixel0, pixels, c, c_row);
  }
  bool in_registers(std::int64_t image, std::int64_t channel0, std::int64_t count, std::int64_t pixel0,
                    std::int64_t pixels, tile_epilogue<T>& to) const {
    return nhwc ? epilogue.in_registers(pixel0, pixels, channel0, count, to)
                : epilogue.in_registers(image * channels + channel0, count, pixel0, pixels, to);
  }
};

}  // namespace kiln::kernels

#pragma once
#include "kiln/static_program/kernel/product.hpp"

// Static programs instantiate this text, and exported programs contain it: it needs vectors and nothing else.
namespace kiln::kernels {

/// Columns of a panel of packed weights. Each panel is dense; only the last one is narrower, a multiple of 16.
inline constexpr std::int64_t panel_columns = 64;
KILN_FN constexpr std::int64_t columns_of_panel(std::int64_t first, std::int64_t all) {
  return all - first < panel_columns ? (all - first + 15) / 16 * 16 : panel_columns;
}

/// Extents and element steps, as constants, of a convolution with weights packed in panels of filters, from an image
/// in NHWC; another one is copied strip by strip. Its results are left to the caller. A product of
/// `height` rows with a matrix is one of 1x1 windows.
struct window_extents {
  std::int64_t channels = 1, filters = 1, height = 1, width = 1, out_height = 1, out_width = 1;
  std::int64_t kernel_rows = 1, kernel_columns = 1, row_stride = 1, column_stride = 1, row_dilation = 1,
               column_dilation = 1, top = 0, left = 0;
  std::int64_t x_channel = 1, x_row = 0, x_column = 0;

  constexpr std::int64_t depth() const { return channels * kernel_rows * kernel_columns; }
  constexpr std::int64_t span_rows() const { return (kernel_rows - 1) * row_dilation + 1; }
  constexpr std::int64_t span_columns() const { return (kernel_columns - 1) * column_dilation + 1; }
  constexpr std::int64_t rows_read(std::int64_t rows) const { return (rows - 1) * row_stride + span_rows(); }
  constexpr std::int64_t columns_read() const { return (out_width - 1) * column_stride + span_columns(); }
  /// Whether strips of the input are copied between zeros, NHWC.
  constexpr bool copied() const {
    return top != 0 || left != 0 || rows_read(out_height) > height || columns_read() > width ||
           (x_channel != 1 && channels != 1);
  }
  constexpr std::int64_t pixel() const { return copied() ? channels : x_column; }
  constexpr std::int64_t line() const { return copied() ? columns_read() * channels : x_row; }
  /// Rows of results that meet all weights before the next ones: enough pixels to use a weight often, few enough for
  /// L2. The last strip overlaps the one before it, so that all are alike.
  constexpr std::int64_t strip_rows() const {
    constexpr std::int64_t most_elements = 64 * 1024, least_pixels = 48;
    std::int64_t strips = 1;
    const auto rows = [&] { return (out_height + strips - 1) / strips; };
    while (rows() * out_width >= 2 * least_pixels && rows_read(rows()) * columns_read() * channels > most_elements)
      ++strips;
    return rows();
  }
  constexpr std::int64_t pixels() const { return strip_rows() * out_width; }
  /// Elements of a window that are multiplied at a time: all of them, or a part of a run where a panel of weights is so
  /// large that it would not stay in L2 while the pixels of a strip meet it. Sums wait in memory.
  constexpr std::int64_t part() const {
    constexpr std::int64_t least = 128, most = 768;
    if (depth() <= 2 * most || pixels() <= 12) return depth();
    for (std::int64_t cuts = 1; run() / cuts >= least; ++cuts)
      if (run() % cuts == 0 && run() / cuts <= most) return run() / cuts;
    return depth();  // no cut is worth the sums' way to memory and back
  }
  constexpr std::int64_t sums() const { return part() < depth() ? (pixels() + 12) * panel_columns : 0; }
  /// Elements of memory: the sums that wait, then the copied strip.
  constexpr std::int64_t memory() const {
    return sums() + (copied() ? (rows_read(strip_rows()) * columns_read() * channels + 15) / 16 * 16 : 0);
  }
  /// Elements of the packed weights: [panel][kernel row][kernel column][channel][column].
  constexpr std::int64_t weights() const { return (filters + 15) / 16 * 16 * depth(); }
  /// Elements that follow each other in all windows, and in the rows of packed weights: a line of the window, or less.
  constexpr std::int64_t run() const {
    return kernel_columns == 1 || (column_dilation == 1 && pixel() == channels) ? kernel_columns * channels : channels;
  }
  /// Pixels of a tile, of which `most` fit the registers: those that waste least.
  constexpr std::int64_t tile_rows(std::int64_t most) const {
    std::int64_t best = 1, least = 0;
    for (std::int64_t rows = 1; rows <= most && rows <= pixels(); ++rows) {
      const std::int64_t work = (pixels() + rows - 1) / rows * (5 * rows + 2);
      if (rows == 1 || work <= least) best = rows, least = work;
    }
    return best;
  }
};

/// Copies the input rows after the results' rows from `y0` on, between zeros, NHWC.
template <window_extents P, int Lanes, class T> KILN_FN void fill_window_strip(const T* x, T* strip, std::int64_t y0) {
  using V = vec<T, Lanes>;
  constexpr std::int64_t line = P.columns_read() * P.channels, rows = P.rows_read(P.strip_rows());
  constexpr std::int64_t begin = P.left < P.columns_read() ? P.left : P.columns_read(),
                         end = P.left + P.width < P.columns_read() ? P.left + P.width : P.columns_read();
  const auto zero = [](T * to, std::int64_t n) __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = T{};
  };
  for (std::int64_t r = 0; r < rows; ++r) {
    T* const to = strip + r * line;
    const std::int64_t y = y0 * P.row_stride - P.top + r;
    if (y < 0 || y >= P.height) {
      zero(to, line);
      continue;
    }
    zero(to, begin * P.channels);
    const T* const from = x + y * P.x_row;
    T* const inside = to + begin * P.channels;
    if constexpr (P.x_channel == 1 && P.x_column == P.channels) {
      constexpr std::int64_t n = (end - begin) * P.channels, whole = n / Lanes * Lanes;
      for (std::int64_t i = 0; i < whole; i += Lanes) store(inside + i, load<V>(from + i));
      for (std::int64_t i = whole; i < n; ++i) inside[i] = from[i];
    } else {
      for (std::int64_t c = 0; c < P.channels; ++c)
        for (std::int64_t i = 0; i < end - begin; ++i)
          inside[i * P.channels + c] = from[c * P.x_channel + i * P.x_column];
    }
    zero(to + end * P.channels, line - end * P.channels);
  }
}

/// Adds to the sums of Rows pixels and Vectors of a panel's filters the products with Each elements of the
/// window, which begin at `row`. Meanwhile memory that comes next is fetched.
template <window_extents P, int Lanes, int Rows, int Vectors, std::int64_t Pitch, std::int64_t Each, class T>
KILN_FN void window_tile(vec<T, Lanes> (&sum)[Rows][Vectors], const T* const (&row)[Rows], const T* b, const T* ahead,
                         std::int64_t ahead_step) {
  using V = vec<T, Lanes>;
  constexpr std::int64_t each = Each < P.run() ? Each : P.run(), columns = P.kernel_columns * P.channels / P.run();
  for (std::int64_t i = 0; i < (Each + each * columns - 1) / (each * columns); ++i)
    for (std::int64_t j = 0; j < (Each < each * columns ? 1 : columns); ++j) {
      const T* a[Rows];
#pragma GCC unroll 32
      for (int r = 0; r < Rows; ++r) a[r] = row[r] + i * P.row_dilation * P.line() + j * P.column_dilation * P.pixel();
      for (std::int64_t k = 0; k < each; ++k) {
        V line[Vectors];
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) line[v] = load<V>(b + v * Lanes);
        b += Pitch;
        __builtin_prefetch(ahead, 0, 2);
        ahead += ahead_step;
#pragma GCC unroll 32
        for (int r = 0; r < Rows; ++r) {
          const V scale = splat<V>(a[r][k]);
#pragma GCC unroll 8
          for (int v = 0; v < Vectors; ++v) sum[r][v] = multiply_add(scale, line[v], sum[r][v]);
        }
      }
    }
}

/// All pixels of a strip for Columns filters of a panel. `next` is read after this panel.
template <window_extents P, int Lanes, int Registers, std::int64_t Columns, std::int64_t Pitch, class T, class Put>
KILN_FN void window_columns(const T* from, const T* b, const T* next, T* waiting, Put&& put) {
  using V = vec<T, Lanes>;
  constexpr int vectors = static_cast<int>((Columns + Lanes - 1) / Lanes),
                last = static_cast<int>(Columns - (vectors - 1) * Lanes);
  constexpr int most = Registers / vectors < 12 ? Registers / vectors : 12, rows = static_cast<int>(P.tile_rows(most));
  constexpr std::int64_t pixels = P.pixels(), tiles = (pixels + rows - 1) / rows;
  constexpr std::int64_t depth = P.part(), parts = P.depth() / depth, columns = P.kernel_columns * P.channels / P.run(),
                         cuts = depth < P.run() ? P.run() / depth : 1;
  constexpr std::int64_t share = (Pitch * depth + tiles - 1) / tiles, step = (share + depth - 1) / depth;
  for (std::int64_t part = 0; part < parts; ++part) {
    const T* const weights = b + part * depth * Pitch;
    const T* const ahead = part + 1 < parts ? weights + depth * Pitch : next;
    // where the part begins in a window
    const std::int64_t begin = parts == 1
                                   ? 0
                                   : part / cuts / columns * P.row_dilation * P.line() +
                                         part / cuts % columns * P.column_dilation * P.pixel() + part % cuts * depth;
    for (std::int64_t t = 0; t < tiles; ++t) {
      // the last tile overlaps the one before it, but for sums that wait
      const std::int64_t first = (t + 1) * rows <= pixels ? t * rows : pixels - rows;
      const T* row[rows];
      std::int64_t y[rows], x[rows];
      V sum[rows][vectors];
#pragma GCC unroll 32
      for (int r = 0; r < rows; ++r) {
        y[r] = (first + r) / P.out_width, x[r] = (first + r) % P.out_width;
        row[r] = from + y[r] * P.row_stride * P.line() + x[r] * P.column_stride * P.pixel() + begin;
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v)
          sum[r][v] = part == 0 ? V{} : load<V>(waiting + (t * rows + r) * vectors * Lanes + v * Lanes);
      }
      window_tile<P, Lanes, rows, vectors, Pitch, depth>(sum, row, weights, ahead + t * share, step);
#pragma GCC unroll 32
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
          if (part + 1 < parts)
            store(waiting + (t * rows + r) * vectors * Lanes + v * Lanes, sum[r][v]);
          else if (v + 1 < vectors)
            put(y[r], x[r], v * Lanes, std::integral_constant<int, Lanes>{}, sum[r][v]);
          else
            put(y[r], x[r], v * Lanes, std::integral_constant<int, last>{}, sum[r][v]);
        }
    }
  }
}

/// The convolution of one image: `put(row, column, filter, std::integral_constant<int, N>, sums)` takes the sums of N
/// filters of a pixel, some pixels twice. `memory` holds `P.memory()` elements.
template <window_extents P, int Lanes, int Registers, class T, class Put>
KILN_FN void static_conv_nhwc(const T* x, const T* weights, T* memory, Put&& put) {
  constexpr std::int64_t rows = P.strip_rows(), width = (Registers >= 24 ? 4 : 2) * Lanes;
  constexpr std::int64_t whole = P.filters / panel_columns * panel_columns;
  for (std::int64_t strip = 0; strip < P.out_height; strip += rows) {
    const std::int64_t y0 = strip + rows <= P.out_height ? strip : P.out_height - rows;
    const T* from = memory + P.sums();
    if constexpr (P.copied())
      fill_window_strip<P, Lanes>(x, memory + P.sums(), y0);
    else
      from = x + y0 * P.row_stride * P.x_row;
    const auto columns = [&]<std::int64_t Columns, std::int64_t Pitch>(std::int64_t first) {
      // the panel that follows, or the first one, with which the next strip begins
      const T* const b = weights + first / panel_columns * panel_columns * P.depth();
      const T* const next = first + panel_columns < P.filters ? b + panel_columns * P.depth() : weights;
      window_columns<P, Lanes, Registers, Columns, Pitch>(
          from, b + first % panel_columns, next, memory,
          [&](std::int64_t y, std::int64_t px, std::int64_t column, auto count, vec<T, Lanes> sums) {
            put(y0 + y, px, first + column, count, sums);
          });
    };
    for (std::int64_t first = 0; first < whole; first += width)
      columns.template operator()<width, panel_columns>(first);
    if constexpr (whole != P.filters) {
      constexpr std::int64_t pitch = columns_of_panel(whole, P.filters);
      constexpr std::int64_t even = (P.filters - whole) / width * width;
      for (std::int64_t first = whole; first < whole + even; first += width)
        columns.template operator()<width, pitch>(first);
      if constexpr (whole + even != P.filters)
        columns.template operator()<P.filters - whole - even, pitch>(whole + even);
    }
  }
}

}  // namespace kiln::kernels

#pragma once

#include "kiln/kernel/conv/image_layout.hpp"
#include "kiln/kernel/conv/problem.hpp"
#include "kiln/kernel/conv/winograd/terms.hpp"
#include "kiln/kernel/gemm/gemm.hpp"

namespace kiln::kernels {

/// The Height x Width output tiles of Winograd, row by row of an image, image after image.
template <int Height, int Width = Height> struct tile_grid {
  std::int64_t height, width;  ///< of the outputs of an image
  std::int64_t rows, cols;     ///< tiles of an image
  std::int64_t tiles;          ///< of all images

  explicit tile_grid(const conv_problem& p)
      : height(std::max<std::int64_t>(1, p.output(1))),
        width(std::max<std::int64_t>(1, p.output(2))),
        rows(ceil_div(height, Height)),
        cols(ceil_div(width, Width)),
        tiles(std::max<std::int64_t>(1, p.batch) * rows * cols) {}

  /// A tile's image and its first output there.
  struct place {
    std::int64_t image, y, x;
  };
  place at(std::int64_t tile) const { return {tile / (rows * cols), tile / cols % rows * Height, tile % cols * Width}; }
  /// Calls `body(tile, count)` for tiles [first, first + count), those of one row at a time.
  template <class F> void for_rows(std::int64_t first, std::int64_t count, F&& body) const {
    for (std::int64_t i = first; i < first + count;) {
      const std::int64_t run = std::min(first + count - i, cols - i % cols);
      body(i, run);
      i += run;
    }
  }
};

/// Rows of some NCHW channels: runs of memory too short for the hardware prefetcher, which are prefetched a few at a
/// time before they are read or written.
template <class T> struct plane_rows {
  const T* at;
  std::ptrdiff_t plane, row;
  std::int64_t channels, rows, length;

  /// Prefetches one of `parts` shares.
  template <int Write> void fetch(std::int64_t part, std::int64_t parts) const {
    constexpr std::int64_t line = 64 / sizeof(T);
    for (std::int64_t c = quotient(channels * part, parts); c < quotient(channels * (part + 1), parts); ++c)
      for (std::int64_t y = 0; y < rows && length > 0; ++y) {
        const T* const from = at + c * plane + y * row;
        for (std::int64_t i = 0; i < length; i += line) __builtin_prefetch(from + i, Write, 3);
        __builtin_prefetch(from + length - 1, Write, 3);
      }
  }
};

/// The input transform, for NCHW and NHWC. Vectors run over channels: in NCHW, the rows that a row of tiles reads are
/// transposed, some channels at a time, into scratch that stays in the cache.
template <class T, int Outputs, int Taps, int Stride> class winograd_input {
  using transform = winograd_transform<Outputs, Taps, Stride>;
  using terms = tile_terms<transform>;
  using V = native_vec<T>;
  static constexpr int lanes = native_lanes<T>, side = transform::inputs, step = Outputs * Stride;

 public:
  winograd_input(const conv_problem& p, const image_layout& layout) : p_(p), layout_(layout), grid_(p) {}

  /// Elements of scratch for each worker.
  std::int64_t scratch_size() const { return layout_.nhwc ? 0 : side * p_.input[2] * lanes; }

  /// Transforms channels [begin, end) of `count` tiles of one row; `begin` is a multiple of a vector. Element (term i,
  /// tile, channel) goes to `to(tile)[i * term_step + channel]`; channels from `end` up to a vector are zero.
  template <class To>
  void run(const T* input, std::int64_t first, std::int64_t count, std::int64_t begin, std::int64_t end, To&& to,
           std::ptrdiff_t term_step, T* scratch) const {
    const auto at = grid_.at(first);
    const std::int64_t y0 = at.y * Stride - p_.pad_begin[1], x0 = at.x * Stride - p_.pad_begin[2];
    if (layout_.nhwc) {
      const std::ptrdiff_t pixel = layout_.step;
      const window all{input + at.image * p_.input_pixels() * pixel + begin,
                       p_.input[2] * pixel,
                       pixel,
                       0,
                       0,
                       p_.input[1],
                       p_.input[2]};
      for (std::int64_t i = 0; i < count; ++i)
        transform_tile(all, y0, x0 + i * step, end - begin, to(first + i) + begin, term_step);
      return;
    }
    const std::int64_t top = std::clamp<std::int64_t>(y0, 0, p_.input[1]);
    const std::int64_t left = std::clamp<std::int64_t>(x0, 0, p_.input[2]);
    const std::int64_t height = std::clamp(y0 + side, top, p_.input[1]) - top;
    const std::int64_t width = std::clamp(x0 + (count - 1) * step + side, left, p_.input[2]) - left;
    const window transposed{scratch, width * lanes, lanes, top, left, height, width};
    const std::int64_t plane = p_.input_pixels();
    const bool whole = width == p_.input[2];  // adjacent rows form one run
    const std::int64_t runs = whole ? 1 : height, length = whole ? height * width : width;
    for (std::int64_t c = begin; c < end; c += lanes) {
      const std::int64_t channels = std::min<std::int64_t>(lanes, end - c);
      const T* const from = input + (at.image * p_.in_channels + c) * plane + top * p_.input[2] + left;
      for (std::int64_t y = 0; y < runs; ++y)
        transpose_block(from + y * p_.input[2], plane, scratch + y * width * lanes, lanes, channels, length);
      const plane_rows<T> next{
          from + lanes * plane, plane, p_.input[2], std::min<std::int64_t>(lanes, end - c - lanes), runs, length};
      for (std::int64_t i = 0; i < count; ++i) {
        if (next.channels > 0) next.template fetch<0>(i, count);
        transform_tile(transposed, y0, x0 + i * step, channels, to(first + i) + c, term_step);
      }
    }
  }

 private:
  // height x width pixels of an image from (y, x) on, and their strides.
  struct window {
    const T* at;
    std::ptrdiff_t row, pixel;
    std::int64_t y, x, height, width;
  };

  static void transform_tile(const window& from, std::int64_t y0, std::int64_t x0, std::int64_t channels, T* to,
                             std::ptrdiff_t term_step) {
    // rows [top, bottom) and columns [left, right) of the tile are inside the image
    const auto within = [](std::int64_t at) { return std::clamp<std::int64_t>(at, 0, side); };
    const std::int64_t top = within(from.y - y0), bottom = within(from.y + from.height - y0);
    const std::int64_t left = within(from.x - x0), right = within(from.x + from.width - x0);
    const T* const corner = from.at + (y0 - from.y) * from.row + (x0 - from.x) * from.pixel;
    const std::int64_t whole = top == 0 && left == 0 && bottom == side && right == side ? channels / lanes * lanes : 0;
    for (std::int64_t c = 0; c < whole; c += lanes)
      transform_vector(
          [&](int i, int j)
              __attribute__((always_inline)) { return load<V>(corner + i * from.row + j * from.pixel + c); },
          to + c, term_step);
    for (std::int64_t c = whole; c < channels; c += lanes) {
      const int count = static_cast<int>(std::min<std::int64_t>(lanes, channels - c));
      transform_vector(
          [&](int i, int j) __attribute__((always_inline)) {
            return i >= top && i < bottom && j >= left && j < right
                       ? load_n<V>(corner + i * from.row + j * from.pixel + c, count)
                       : V{};
          },
          to + c, term_step);
    }
  }

  // One vector of channels of a tile, whose elements `get(row, column)` reads.
  template <class Get> KILN_FN static void transform_vector(Get&& get, T* out, std::ptrdiff_t term_step) {
    V half[side][side];
#pragma GCC unroll 7
    for (int j = 0; j < side; ++j) {
      V d[side], t[side];
#pragma GCC unroll 7
      for (int i = 0; i < side; ++i) d[i] = get(i, j);
      transform::input(d, t);
#pragma GCC unroll 7
      for (int i = 0; i < side; ++i) half[i][j] = t[i];
    }
#pragma GCC unroll 7
    for (int i = 0; i < side; ++i) {
      V t[side];
      transform::input(half[i], t);
#pragma GCC unroll 7
      for (int j = 0; j < side; ++j) {
        if constexpr (terms::one_each) {  // one addition each, rather than a multiplication
          store(out, t[j]);
          out += term_step;
        } else {
          store(out + terms::place_of(i, j) * term_step, t[j]);
        }
      }
    }
  }

  conv_problem p_;
  image_layout layout_;
  tile_grid<Outputs> grid_;
};

/// The output transform, for NHWC and, through a transpose in scratch, NCHW. `Down` transforms the columns of a tile,
/// `Along` its rows.
template <class T, class Down, class Along = Down> class winograd_output {
  using V = native_vec<T>;
  static constexpr int lanes = native_lanes<T>, tile_height = Down::outputs, tile_width = Along::outputs;
  static constexpr int down = tile_terms<Down>::points, across = tile_terms<Along>::points;

 public:
  winograd_output(const conv_problem& p, const image_layout& layout) : p_(p), layout_(layout), grid_(p) {}

  /// Elements of scratch for each worker.
  std::int64_t scratch_size() const { return layout_.nhwc ? 0 : tile_height * grid_.width * lanes; }

  /// Writes channels [channel, channel + channels) of `count` tiles of one row. Element (point i, tile, channel) of the
  /// sums is at i * point_step + (tile - first) * tile_step + its index among the channels.
  template <class Epilogue>
  void run(const T* sums, std::ptrdiff_t point_step, std::ptrdiff_t tile_step, std::int64_t first, std::int64_t count,
           std::int64_t channel, std::int64_t channels, T* output, T* scratch, Epilogue&& epilogue) const {
    const auto at = grid_.at(first);
    const std::int64_t width = grid_.width, plane = grid_.height * width;
    const std::int64_t pixels = std::min(count * tile_width, width - at.x);
    const std::int64_t rows = std::min<std::int64_t>(tile_height, grid_.height - at.y);
    const std::int64_t pixel0 = at.y * width + at.x;
    tile_epilogue<T> inside[tile_height];
    // Written pixels are `step` elements apart, rows `row`.
    const auto untransform = [&](const T* from, T* to, std::ptrdiff_t step, std::ptrdiff_t row, std::int64_t some,
                                 bool applied, const plane_rows<T>& written) {
      for (std::int64_t t = 0; t < count; ++t) {
        written.template fetch<1>(t, count);
        untransform_tile(from + t * tile_step, point_step, to + t * tile_width * step, step, row, rows,
                         std::min<std::int64_t>(tile_width, pixels - t * tile_width), some, applied ? inside : nullptr,
                         t * tile_width);
      }
    };
    if (layout_.nhwc) {
      const std::int64_t row0 = at.image * plane + pixel0;
      const std::ptrdiff_t step = layout_.step;
      T* const out = output + row0 * step + channel;
      bool applied = true;
      for (std::int64_t y = 0; y < rows; ++y)
        applied =
            applied &&
            applies_in_registers(epilogue, std::int64_t{0}, channel, channels, row0 + y * width, pixels, inside[y]) &&
            !inside[y].row_bias;
      untransform(sums, out, step, width * step, channels, applied, {});
      for (std::int64_t y = 0; y < rows && !applied; ++y)
        epilogue(std::int64_t{0}, channel, channels, row0 + y * width, pixels, out + y * width * step, step);
      return;
    }
    const bool whole = pixels == width;  // adjacent rows form one run
    const std::int64_t runs = whole ? 1 : rows, length = whole ? rows * pixels : pixels;
    for (std::int64_t c = 0; c < channels; c += lanes) {
      const std::int64_t some = std::min<std::int64_t>(lanes, channels - c), channel0 = channel + c;
      // a bias per channel of NCHW is a vector here
      const bool applied = applies_in_registers(epilogue, at.image, channel0, some, pixel0, length, inside[0]) &&
                           !inside[0].addend && !inside[0].col_bias[0] && !inside[0].col_bias[1];
      inside[0].col_bias[0] = inside[0].row_bias;
      std::fill_n(inside + 1, tile_height - 1, inside[0]);
      T* const out = output + (at.image * p_.out_channels + channel0) * plane + pixel0;
      untransform(sums + c, scratch, lanes, pixels * lanes, some, applied, {out, plane, width, some, runs, length});
      for (std::int64_t y = 0; y < runs; ++y) {
        transpose_block(scratch + y * pixels * lanes, lanes, out + y * width, plane, length, some);
        if (!applied) epilogue(at.image, channel0, some, pixel0 + y * width, length, out + y * width, plane);
      }
    }
  }

 private:
  // `epilogue`, where it is not null, is applied to the sums of each row; `pixel` is the tile's first one there.
  static void untransform_tile(const T* sums, std::ptrdiff_t point_step, T* out, std::ptrdiff_t step,
                               std::ptrdiff_t row, std::int64_t rows, std::int64_t pixels, std::int64_t channels,
                               const tile_epilogue<T>* epilogue, std::int64_t pixel) {
    for (std::int64_t c = 0; c < channels; c += lanes) {
      const int count = static_cast<int>(std::min<std::int64_t>(lanes, channels - c));
      const auto read = [&](const T* from) { return count == lanes ? load<V>(from) : load_n<V>(from, count); };
      V half[tile_height][across];
#pragma GCC unroll 8
      for (int j = 0; j < across; ++j) {
        V m[down], y[tile_height];
#pragma GCC unroll 6
        for (int i = 0; i < down; ++i) m[i] = load<V>(sums + c + (i * across + j) * point_step);
        Down::output(m, y);
#pragma GCC unroll 4
        for (int i = 0; i < tile_height; ++i) half[i][j] = y[i];
      }
      V bias{};
      if (epilogue) {
        bias = broadcast<V>(epilogue->offset);
        for (const T* more : epilogue->col_bias)
          if (more) bias += read(more + c);
      }
#pragma GCC unroll 4
      for (int i = 0; i < tile_height; ++i) {
        if (i == rows) break;
        V y[tile_width];
        Along::output(half[i], y);
        if (epilogue) {
#pragma GCC unroll 4
          for (int j = 0; j < tile_width; ++j) y[j] += bias;
          if (const T* const addend = epilogue[i].addend)
#pragma GCC unroll 4
            for (int j = 0; j < tile_width; ++j)
              if (j < pixels) y[j] += read(addend + (pixel + j) * epilogue[i].addend_row + c);
          if (epilogue->clamps) {
            const V low = broadcast<V>(epilogue->low), high = broadcast<V>(epilogue->high);
#pragma GCC unroll 4
            for (int j = 0; j < tile_width; ++j)
              y[j] = elementary::native_ops<V>::lesser(high, elementary::native_ops<V>::greater(low, y[j]));
          }
        }
        T* const to = out + i * row + c;
        if (pixels == tile_width && count == lanes) {
#pragma GCC unroll 4
          for (int j = 0; j < tile_width; ++j) store(to + j * step, y[j]);
        } else {
#pragma GCC unroll 4
          for (int j = 0; j < tile_width; ++j)
            if (j < pixels) store_n(to + j * step, y[j], count);
        }
      }
    }
  }

  conv_problem p_;
  image_layout layout_;
  tile_grid<tile_height, tile_width> grid_;
};

}  // namespace kiln::kernels

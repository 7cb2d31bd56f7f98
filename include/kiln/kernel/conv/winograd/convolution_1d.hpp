#pragma once

#include "kiln/kernel/conv/winograd/tiles.hpp"
#include "kiln/kernel/conv/winograd/transform_1d.hpp"

namespace kiln::kernels {

/// Two-dimensional convolution by Winograd F(4, taps) along rows alone (see `winograd_transform`), for kernels of any
/// height and stride, and few input channels. Taps of a strided row fall into phases (column modulo stride), each of
/// which is a filter of stride 1 over its columns. The output transform of a point is the same for all phases, so their
/// sums are added before it: each point is one GEMM, whose depth runs over the phases that have the point, input
/// channels and kernel rows. A task transforms the rows that a strip of output rows reads.
template <class T> class winograd_1d_convolution {
  using V = native_vec<T>;
  static constexpr int lanes = native_lanes<T>;
  static constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t panel = register_tile<T>::width, most_taps = 5;
  static constexpr std::int64_t most_transformed = 256 * 1024 / static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t most_weights = 512 * 1024 / static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t least_tiles = 24;  // of a strip, to fill the registers for each read of the weights
  static constexpr std::int64_t most_tiles = 8 * register_tile<T>::rows;  // whose sums are kept at a time

  // The identity across rows, which Winograd along rows does not transform.
  struct no_transform {
    static constexpr int outputs = 1, inputs = 1;
    static KILN_FN void output(const V (&m)[1], V (&y)[1]) { y[0] = m[0]; }
  };
  template <int Taps> using output_of = winograd_output<T, no_transform, winograd_transform<4, Taps>>;

 public:
  static constexpr std::int64_t tile_width = 4;  ///< outputs of a tile
  /// Tiles of a row of outputs.
  static constexpr std::int64_t row_tiles(const conv_problem& p) {
    return ceil_div(std::max<std::int64_t>(1, p.output(2)), tile_width);
  }
  /// Points of a phase; the first phase has all points of a tile.
  static constexpr std::int64_t points(const conv_problem& p, std::int64_t phase = 0) {
    return taps(p, phase) + tile_width - 1;
  }
  /// Points of all phases: the elements of a transformed tile of one input row.
  static constexpr std::int64_t phase_points(const conv_problem& p) {
    std::int64_t sum = 0;
    for (std::int64_t phase = 0; phase < phases(p); ++phase) sum += points(p, phase);
    return sum;
  }
  /// Products of a tile for one output channel.
  static constexpr std::int64_t products(const conv_problem& p) {
    return phase_points(p) * p.group_inputs() * p.kernel[1];
  }
  /// Rows of outputs whose transformed input stays in L2.
  static constexpr std::int64_t most_rows(const conv_problem& p) {
    const std::int64_t row = std::max<std::int64_t>(1, phase_points(p) * p.group_inputs() * row_tiles(p));
    const std::int64_t fit = most_transformed / row;  // rows of the input
    return fit < p.span(1) ? 0 : (fit - p.span(1)) / p.stride[1] + 1;
  }
  /// The transformed input of a row of outputs has to fit L2, and so do a group's weights, which each strip reads.
  static constexpr bool serves(const conv_problem& p) {
    return p.input[0] == 1 && p.kernel[0] == 1 && p.pad_begin[0] == 0 && p.pad_end[0] == 0 && p.dilation[2] == 1 &&
           p.kernel[2] > p.stride[2] && taps(p, 0) <= most_taps && most_rows(p) > 0 && group_size(p) <= most_weights;
  }

  winograd_1d_convolution(const conv_problem& problem, unsigned workers, const image_layout& out)
      : p_(problem),
        grid_(problem),
        out_(out),
        inputs_(problem.group_inputs()),
        outputs_(problem.group_outputs()),
        products_(products(problem)),
        columns_(-problem.pad_begin[2], 1, columns_read(), row_columns()) {
    const std::int64_t images = std::max<std::int64_t>(1, p_.batch * p_.groups), all = workers;
    const std::int64_t tasks = std::clamp(images * grid_.rows * grid_.cols / least_tiles, all, 4 * all);
    const std::int64_t strips =
        std::max(workers == 1 ? 1 : ceil_div(tasks, images), ceil_div(grid_.rows, most_rows(p_)));
    strip_rows_ = ceil_div(grid_.rows, std::min(strips, grid_.rows));
    strips_ = ceil_div(grid_.rows, strip_rows_);
    plane_ = rows_in(strip_rows_) * grid_.cols;
    std::vector<std::int64_t> first;  // first [row, tile] matrix of each phase
    for (std::int64_t phase = 0, planes = 0; phase < phases(p_); ++phase) {
      first.push_back(planes);
      planes += points(p_, phase) * inputs_;
    }
    depths_.resize(static_cast<std::size_t>(points(p_)));
    for_products(p_,
                 [&](std::int64_t point, std::int64_t phase, std::int64_t of_phase, std::int64_t c, std::int64_t y) {
                   ++depths_[static_cast<std::size_t>(point)];
                   const std::int64_t at = first[static_cast<std::size_t>(phase)] + of_phase * inputs_ + c;
                   offsets_.push_back(static_cast<std::int32_t>(at * plane_ + y * p_.dilation[1] * grid_.cols));
                 });
  }

  static std::int64_t weights_size(const conv_problem& p) { return p.groups * group_size(p); }
  /// Transforms weights [outputs, inputs / groups, rows, columns] into panels of each group's output channels.
  static void pack_weights(thread_pool& pool, const conv_problem& p, T* to, const T* weights) {
    const std::int64_t outputs = p.group_outputs(), padded = round_up(outputs, lanes);
    pool.parallel_for(p.groups * padded, [&](std::int64_t task, unsigned) {
      const std::int64_t group = task / padded, channel = task % padded, col = channel / panel * panel;
      const std::int64_t width = panel_width<T>(col, outputs);
      T* at = to + group * group_size(p) + col * products(p) + channel - col;
      const T* const from = weights + (group * outputs + channel) * p.depth();
      for_products(p, [&](std::int64_t, std::int64_t phase, std::int64_t of_phase, std::int64_t c, std::int64_t y) {
        const T* const row = from + (c * p.kernel[1] + y) * p.kernel[2] + phase;
        double sum = 0;
        with_taps(taps(p, phase), [&]<int Taps>() {
          for (std::size_t i = 0; i < Taps && channel < outputs; ++i)
            sum += winograd_transform<4, Taps>::weights[static_cast<std::size_t>(of_phase)][i] *
                   static_cast<double>(row[static_cast<std::int64_t>(i) * p.stride[2]]);
        });
        *at = static_cast<T>(sum);
        at += width;
      });
    });
  }

  /// Elements of scratch for each worker.
  std::int64_t scratch_size() const {
    return sums_size() + output_scratch() + row_scratch() + transformed_size(strip_rows_);
  }

  /// As `convolution::run`, an epilogue's tile is a run of pixels of a row.
  template <class Epilogue>
  void run(thread_pool& pool, const T* input, const T* weights, T* output, T* scratch, Epilogue&& epilogue) const {
    const std::int64_t each = round_up(scratch_size(), line);
    pool.parallel_for(p_.batch * p_.groups * strips_, [&](std::int64_t task, unsigned worker) {
      T* const own = scratch + worker * each;
      T* const rows = own + sums_size() + output_scratch();
      T* const transformed = rows + row_scratch();
      const std::int64_t of = task / strips_, image = of / p_.groups, group = of % p_.groups;
      const std::int64_t y0 = task % strips_ * strip_rows_, height = std::min(strip_rows_, grid_.rows - y0);
      transform_strip(input + of * inputs_ * p_.input_pixels(), y0, rows_in(height), rows, transformed);
      const std::int64_t tiles = height * grid_.cols, first = (image * grid_.rows + y0) * grid_.cols;
      with_taps(taps(p_, 0), [&]<int Taps>() {
        for (std::int64_t tile = 0; tile < tiles; tile += most_tiles)
          run_tiles<Taps>(transformed, first, tile, std::min(most_tiles, tiles - tile),
                          weights + group * group_size(p_), group * outputs_, output, own, epilogue);
      });
    });
  }

 private:
  // Taps of a kernel row in one phase.
  static constexpr std::int64_t taps(const conv_problem& p, std::int64_t phase) {
    return ceil_div(p.kernel[2] - phase, p.stride[2]);
  }
  static constexpr std::int64_t phases(const conv_problem& p) { return std::min(p.stride[2], p.kernel[2]); }
  static constexpr std::int64_t group_size(const conv_problem& p) {
    return packed_b_size<T>(products(p), p.group_outputs());
  }

  template <class F> static void with_taps(std::int64_t taps, F&& f) {
    switch (taps) {
      case 1: return f.template operator()<1>();
      case 2: return f.template operator()<2>();
      case 3: return f.template operator()<3>();
      case 4: return f.template operator()<4>();
      default: return f.template operator()<5>();
    }
  }
  // Index of a point among a phase's own points, -1 if it is none of them; infinity is the last of each phase.
  static std::int64_t point_of(const conv_problem& p, std::int64_t phase, std::int64_t point) {
    const std::int64_t last = points(p, phase) - 1;
    return point + 1 == points(p) ? last : point < last ? point : -1;
  }
  // Calls `body(point, phase, the phase's point, channel, kernel row)` for each product in the order of weights.
  template <class F> static void for_products(const conv_problem& p, F&& body) {
    for (std::int64_t point = 0; point < points(p); ++point)
      for (std::int64_t phase = 0; phase < phases(p); ++phase) {
        const std::int64_t of_phase = point_of(p, phase, point);
        for (std::int64_t c = 0; c < p.group_inputs() && of_phase >= 0; ++c)
          for (std::int64_t y = 0; y < p.kernel[1]; ++y) body(point, phase, of_phase, c, y);
      }
  }

  std::int64_t rows_in(std::int64_t rows) const { return (rows - 1) * p_.stride[1] + p_.span(1); }
  std::int64_t transformed_size(std::int64_t rows) const {
    return phase_points(p_) * inputs_ * rows_in(rows) * grid_.cols;
  }
  std::int64_t sums_size() const { return points(p_) * most_tiles * panel; }
  std::int64_t output_scratch() const { return round_up(output_of<1>(p_, out_).scratch_size(), line); }
  // A padded input row, and its columns grouped modulo the step from tile to tile.
  std::int64_t tile_step() const { return tile_width * p_.stride[2]; }
  std::int64_t row_columns() const { return (grid_.cols + 1) * tile_step(); }
  // Columns after the last that an output reads count as padding: a NaN or infinity there would spread over its tile.
  std::int64_t columns_read() const {
    return std::min(p_.input[2], (grid_.width - 1) * p_.stride[2] + p_.span(2) - p_.pad_begin[2]);
  }
  std::int64_t column_size() const { return round_up(grid_.cols, lanes) + lanes; }
  std::int64_t row_scratch() const { return round_up(row_columns() + tile_step() * column_size(), line); }

  // Writes the transformed rows as [phase, its points, channel, row, tile], row-major.
  void transform_strip(const T* image, std::int64_t y0, std::int64_t rows, T* row, T* to) const {
    T* const columns = row + row_columns();
    const std::int64_t first = y0 * p_.stride[1] - p_.pad_begin[1];
    for (std::int64_t c = 0; c < inputs_; ++c)
      for (std::int64_t y = 0; y < rows; ++y) {
        T* const out = to + c * plane_ + y * grid_.cols;
        const std::int64_t iy = first + y;
        if (iy < 0 || iy >= p_.input[1]) {
          for (std::int64_t i = 0; i < phase_points(p_); ++i) fill_zero(out + i * inputs_ * plane_, grid_.cols);
          continue;
        }
        copy_read_range(row, image + c * p_.input_pixels() + iy * p_.input[2], columns_, 1, 0, row_columns());
        transpose_block(row, tile_step(), columns, column_size(), grid_.cols + 1, tile_step());
        T* at = out;
        for (std::int64_t phase = 0; phase < phases(p_); ++phase)
          with_taps(taps(p_, phase), [&]<int Taps>() {
            using transform = winograd_transform<4, Taps>;
            for (std::int64_t tile = 0; tile < grid_.cols; tile += lanes) {
              V d[transform::inputs], t[transform::inputs];
#pragma GCC unroll 8
              for (int i = 0; i < transform::inputs; ++i)
                d[i] =
                    load<V>(columns + (i % tile_width * p_.stride[2] + phase) * column_size() + tile + i / tile_width);
              transform::input(d, t);
              const int count = static_cast<int>(std::min<std::int64_t>(lanes, grid_.cols - tile));
#pragma GCC unroll 8
              for (int i = 0; i < transform::inputs; ++i) store_n(at + i * inputs_ * plane_ + tile, t[i], count);
            }
            at += transform::inputs * inputs_ * plane_;
          });
      }
  }

  // All output channels of tiles [tile, tile + count) of the strip whose first tile is `first`.
  template <int Taps, class Epilogue>
  void run_tiles(const T* transformed, std::int64_t first, std::int64_t tile, std::int64_t count, const T* weights,
                 std::int64_t channel0, T* output, T* sums, Epilogue&& epilogue) const {
    const output_of<Taps> back(p_, out_);
    for (std::int64_t col = 0; col < outputs_; col += panel) {
      const std::int64_t width = panel_width<T>(col, outputs_), cols = std::min(panel, outputs_ - col);
      const int vectors = static_cast<int>(width / lanes);
      const T* const b = weights + col * products_;
      fetch_ahead fetch{reinterpret_cast<const char*>(b), 0};
      if (out_.nhwc && col == 0) {
        // The first products prefetch the pixels that will be written.
        const auto at = grid_.at(first + tile);
        const std::int64_t pixel = (at.image * grid_.height + at.y) * grid_.width + at.x;
        const std::int64_t steps = products_ * ceil_div(count, register_tile<T>::rows_of(vectors));
        fetch = {reinterpret_cast<const char*>(output + pixel * out_.step + channel0),
                 ceil_div(count * tile_width * out_.step * static_cast<std::int64_t>(sizeof(T)), steps + 1)};
      }
      multiply_points(transformed, tile, count, b, vectors, sums, fetch);
      grid_.for_rows(first + tile, count, [&](std::int64_t at, std::int64_t run) {
        back.run(sums + (at - first - tile) * panel, most_tiles * panel, panel, at, run, channel0 + col, cols, output,
                 sums + sums_size(), epilogue);
      });
    }
  }

  // The GEMMs of all points for `count` tiles of a strip with one panel, with `fetch` prefetched between products.
  void multiply_points(const T* transformed, std::int64_t tile, std::int64_t count, const T* b, int vectors, T* sums,
                       fetch_ahead fetch) const {
    const std::int64_t width = vectors * lanes;
    const T* row[most_tiles];
    std::int64_t y = tile / grid_.cols, x = tile % grid_.cols;
    for (std::int64_t i = 0; i < count; ++i) {
      row[i] = transformed + y * p_.stride[1] * grid_.cols + x;
      if (++x == grid_.cols) x = 0, ++y;
    }
    const std::int32_t* offset = offsets_.data();
    for (const std::int64_t depth : depths_) {
      even_blocks(count, register_tile<T>::rows_of(vectors)).each([&](std::int64_t first, int rows) {
        find_tile<T, table_step>(rows, vectors)(depth, row + first, table_step{offset}, b, width, sums + first * panel,
                                                panel, static_cast<int>(width), false, fetch, nullptr);
        fetch.at += depth * fetch.step;
      });
      offset += depth, b += depth * width, sums += most_tiles * panel;
    }
  }

  conv_problem p_;
  tile_grid<1, tile_width> grid_;
  image_layout out_;
  std::int64_t inputs_, outputs_, products_;  // of a group
  read_range columns_;
  std::int64_t strip_rows_ = 1, strips_ = 1, plane_ = 0;
  std::vector<std::int64_t> depths_;   // of each point
  std::vector<std::int32_t> offsets_;  // of each product's transformed row
};

}  // namespace kiln::kernels

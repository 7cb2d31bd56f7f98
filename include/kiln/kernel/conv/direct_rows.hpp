#pragma once

#include "kiln/kernel/conv/column_phases.hpp"
#include "kiln/kernel/gemm/gemm.hpp"

namespace kiln::kernels {

/// The left operand's element k is at `row + k`, row k of the right operand at `b + offset[k]`.
struct right_table_step {
  const std::int32_t* offset;
  std::ptrdiff_t operator()(std::ptrdiff_t k) const { return k; }
  std::ptrdiff_t right(std::ptrdiff_t k) const { return offset[k]; }
};

/// Two-dimensional NCHW convolution with vectors over the pixels of an output row: the unpacked weights, broadcast,
/// multiply rows of a padded strip of the input, stored as `column_phases`. Nothing is gathered per tap or transposed,
/// and what a row of outputs reads of the channels multiplied at a time stays in L1: long rows are cut into columns.
template <class T> class direct_rows_convolution {
 public:
  static constexpr bool serves(const conv_problem& p) {
    return p.input[0] == 1 && p.kernel[0] == 1 && p.pad_begin[0] == 0 && p.pad_end[0] == 0;
  }
  /// Whether what a row of outputs reads of all channels fits L1. Windows of one row take a part of the columns at a
  /// time.
  static constexpr bool stays_near(const conv_problem& p) {
    return p.group_inputs() * p.kernel[1] * column_phases<T>::row_of(p, columns(p)) <= near_elements;
  }

  direct_rows_convolution(const conv_problem& problem, unsigned workers)
      : p_(problem),
        height_(std::max<std::int64_t>(1, problem.output(1))),
        width_(std::max<std::int64_t>(1, problem.output(2))),
        inputs_(problem.group_inputs()),
        outputs_(problem.group_outputs()),
        depth_(problem.depth()),
        cols_(columns(problem)),
        blocks_(ceil_div(width_, cols_)),
        layout_(problem, cols_) {
    constexpr std::int64_t strip_elements = 192 * 1024 / static_cast<std::int64_t>(sizeof(T));
    const std::int64_t images = std::max<std::int64_t>(1, p_.batch * p_.groups);
    const std::int64_t enough = 6 * static_cast<std::int64_t>(workers);
    const std::int64_t strips = workers == 1 ? 1 : ceil_div(enough, images * blocks_);
    strip_rows_ = ceil_div(height_, std::min(strips, height_));
    while (strip_rows_ > 1 && strip_size(strip_rows_) > strip_elements) strip_rows_ = (strip_rows_ + 1) / 2;
    strips_ = ceil_div(height_, strip_rows_);
    // Few strips are shared by output channels, too, though each share copies its strip. Rows of many channels that lie
    // far apart are written slower than adjacent parts of a few.
    const bool many = height_ * width_ > 1024 && !wide();
    const std::int64_t least = many ? std::max<std::int64_t>(1, ceil_div(outputs_, 64)) : 1;
    const std::int64_t most = std::max<std::int64_t>(least, outputs_ / (4 * register_tile<T>::rows));
    const std::int64_t wanted = workers == 1 ? 1 : ceil_div(enough, images * blocks_ * strips_);
    share_ = std::max<std::int64_t>(1, ceil_div(outputs_, std::clamp(wanted, least, most)));
    shares_ = std::max<std::int64_t>(1, ceil_div(outputs_, share_));
    plane_ = layout_.rows_in(strip_rows_) * layout_.row();
    offsets_ = layout_.offsets(inputs_, plane_);
  }

  /// Elements of scratch for each worker.
  std::int64_t scratch_size() const { return strip_size(strip_rows_); }

  template <class Epilogue>
  void run(thread_pool& pool, const T* input, const T* weights, T* output, T* scratch, Epilogue&& epilogue) const {
    const std::int64_t each = round_up(scratch_size(), native_lanes<T>);
    pool.parallel_for(p_.batch * p_.groups * strips_ * blocks_ * shares_, [&](std::int64_t task, unsigned worker) {
      T* const strip = scratch + worker * each;
      // a worker goes along the rows of one share of the channels
      const std::int64_t strip_at = quotient(task, blocks_), x0 = (task - strip_at * blocks_) * cols_;
      const std::int64_t share = quotient(strip_at, strips_), y0 = (strip_at - share * strips_) * strip_rows_;
      const std::int64_t group = quotient(share, shares_);  // counted through the batch
      const std::int64_t first = (share - group * shares_) * share_, rows = std::min(strip_rows_, height_ - y0);
      const T* const from = input + group * inputs_ * p_.input_pixels();
      for (std::int64_t c = 0; c < inputs_; ++c)
        layout_.copy(strip + c * plane_, from + c * p_.input_pixels(), y0, rows, x0);
      const std::int64_t image = quotient(group, p_.groups), of_group = group - image * p_.groups;
      // Long parts of the rows of a few channels are written one after the other.
      const std::int64_t channels = std::min(share_, outputs_ - first);
      const std::int64_t some = wide() ? 2 * register_tile<T>::rows : channels;
      for (std::int64_t c = 0; c < channels; c += some) {
        const panel_place at{image, of_group * outputs_ + first + c, std::min(some, channels - c), 0, x0};
        for (std::int64_t y = 0; y < rows; ++y)
          run_row(strip + y * p_.stride[1] * layout_.row(), weights, output, at.of_row(y0 + y), epilogue);
      }
    });
  }

 private:
  static constexpr std::int64_t most_columns = 512;
  static constexpr std::int64_t near_elements = 28 * 1024 / static_cast<std::int64_t>(sizeof(T));

  // Columns of the output that a task takes: several panels where a window of one row reads few channels.
  static constexpr std::int64_t columns(const conv_problem& p) {
    const std::int64_t width = std::max<std::int64_t>(1, p.output(2));
    if (p.kernel[1] > 1) return width;
    std::int64_t cols = register_tile<T>::width;
    while (cols < most_columns && p.group_inputs() * column_phases<T>::row_of(p, 2 * cols) <= near_elements / 2)
      cols *= 2;
    return std::min(width, cols);
  }
  bool wide() const { return p_.kernel[1] == 1 && cols_ > register_tile<T>::width; }

  // The channels and columns of an output row that a task makes.
  struct panel_place {
    std::int64_t image, channel0, channels, y, x0;
    panel_place of_row(std::int64_t row) const { return {image, channel0, channels, row, x0}; }
  };

  std::int64_t strip_size(std::int64_t rows) const { return inputs_ * layout_.rows_in(rows) * layout_.row(); }

  // The epilogue as the tiles of a panel of pixels call it: rows are channels.
  template <class Epilogue> struct row_epilogue {
    Epilogue& epilogue;
    bool last;
    std::int64_t image, channel0, pixel0, pixels;
    T* c;
    std::ptrdiff_t c_row;

    void operator()(std::int64_t first, int count) const {
      if (last) epilogue(image, channel0 + first, std::int64_t{count}, pixel0, pixels, c + first * c_row, c_row);
    }
    bool in_registers(std::int64_t first, std::int64_t count, tile_epilogue<T>& to) const {
      return last && applies_in_registers(epilogue, image, channel0 + first, count, pixel0, pixels, to);
    }
  };

  template <class Epilogue>
  void run_row(const T* strip, const T* weights, T* output, const panel_place& at, Epilogue&& epilogue) const {
    const std::int64_t width = std::min(cols_, width_ - at.x0), pixels = height_ * width_;
    const std::int64_t block = depth_block<T>(depth_);
    const std::int64_t vectors = ceil_div(width, native_lanes<T>), pixel0 = at.y * width_ + at.x0;
    for (std::int64_t v = 0, left = ceil_div(vectors, register_tile<T>::vectors); left > 0; --left) {
      const std::int64_t take = ceil_div(vectors - v, left), x = v * native_lanes<T>;
      const std::int64_t cols = std::min(take * native_lanes<T>, width - x);
      T* const out = output + (at.image * p_.out_channels + at.channel0) * pixels + pixel0 + x;
      std::int64_t k = 0;
      do {
        const std::int64_t depth = std::min(block, depth_ - k);
        const row_epilogue<std::remove_reference_t<Epilogue>> of_panel{
            epilogue, k + depth >= depth_, at.image, at.channel0, pixel0 + x, cols, out, pixels};
        multiply_panel<T>(depth, weights + at.channel0 * depth_ + k, depth_, at.channels,
                          right_table_step{offsets_.data() + k}, strip + x, 0, out, pixels, static_cast<int>(cols),
                          k != 0, coming_block<T>{}, of_panel);
        k += depth;
      } while (k < depth_);
      v += take;
    }
  }

  conv_problem p_;
  std::int64_t height_, width_, inputs_, outputs_, depth_, cols_, blocks_;
  column_phases<T> layout_;
  std::int64_t strip_rows_ = 1, strips_ = 1, share_ = 1, shares_ = 1, plane_ = 0;
  std::vector<std::int32_t> offsets_;
};

}  // namespace kiln::kernels

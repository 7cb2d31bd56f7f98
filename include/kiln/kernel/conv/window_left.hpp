#pragma once

#include "kiln/kernel/conv/problem.hpp"
#include "kiln/kernel/gemm/operands.hpp"

namespace kiln::kernels {

/// The left operand of the GEMM of a convolution in one group: rows are output pixels, counted through the batch,
/// columns the window's rows, pixels and channels. Blocks of it are copied to the worker's scratch (im2col).
template <class T> class window_left {
 public:
  /// ns that one core takes to copy an element.
  static constexpr double fetch = 0.1;

  /// `step`: elements between adjacent pixels of the NHWC input. Blocks have at most `most_cols` columns; a worker's
  /// scratch has `scratch_size` elements.
  window_left(const conv_problem& problem, const T* input, std::ptrdiff_t step, std::int64_t most_rows,
              std::int64_t most_cols, T* scratch)
      : p_(problem),
        input_(input),
        step_(step),
        row_step_(row_step(most_cols)),
        each_(scratch_size(most_rows, most_cols)),
        scratch_(scratch),
        channels_(problem.in_channels),
        height_(problem.output(1)),
        width_(problem.output(2)),
        joined_(problem.dilation[2] == 1 && step == problem.in_channels) {}

  /// Elements of scratch for each worker.
  static std::int64_t scratch_size(std::int64_t most_rows, std::int64_t most_cols) {
    return most_rows * row_step(most_cols);
  }

  /// Overwrites the task's previous block.
  left_block<T> block(std::int64_t, std::int64_t row0, std::int64_t rows, std::int64_t col, std::int64_t cols,
                      unsigned worker) const {
    T* const local = scratch_ + worker * each_;
    // A row of the window is one run where its pixels are adjacent without gaps, otherwise each pixel is one.
    const std::int64_t pixels = joined_ ? p_.kernel[2] : 1, run = pixels * channels_, runs = p_.kernel[2] / pixels;
    for (std::int64_t at = col; at < col + cols;) {
      const std::int64_t of = at / run, begin = at - of * run, count = std::min(run - begin, col + cols - at);
      copy_run(local + at - col, row0, rows, of / runs, of % runs, begin, count);
      at += count;
    }
    return {local, row_step_};
  }

 private:
  static constexpr std::int64_t line = 64 / sizeof(T);
  // With a power of two as row stride, rows would share few sets of the cache.
  static std::ptrdiff_t row_step(std::int64_t cols) { return round_up(cols, line) + line; }

  // Elements [begin, begin + count) of the run that begins at the window's pixel (ky, kx), for each of the rows.
  void copy_run(T* to, std::int64_t row0, std::int64_t rows, std::int64_t ky, std::int64_t kx, std::int64_t begin,
                std::int64_t count) const {
    const std::int64_t dy = ky * p_.dilation[1] - p_.pad_begin[1], dx = kx * p_.dilation[2] - p_.pad_begin[2];
    std::int64_t x = row0 % width_, y = row0 / width_ % height_, image = row0 / width_ / height_;
    for (std::int64_t r = 0; r < rows; ++r, to += row_step_) {
      const std::int64_t in_y = y * p_.stride[1] + dy, in_x = x * p_.stride[2] + dx;
      if (in_y < 0 || in_y >= p_.input[1]) {
        fill_zero(to, count);
      } else {
        const std::int64_t inside = std::clamp(-in_x * channels_, begin, begin + count);
        const std::int64_t end = std::clamp((p_.input[2] - in_x) * channels_, inside, begin + count);
        const std::int64_t pixel = (image * p_.input[1] + in_y) * p_.input[2] + in_x;
        fill_zero(to, inside - begin);
        copy_strided(to + (inside - begin), input_ + (pixel * step_ + inside), 1, end - inside);
        fill_zero(to + (end - begin), begin + count - end);
      }
      if (++x < width_) continue;
      x = 0;
      if (++y == height_) y = 0, ++image;
    }
  }

  const conv_problem& p_;
  const T* input_;
  std::ptrdiff_t step_, row_step_;
  std::int64_t each_;
  T* scratch_;
  std::int64_t channels_, height_, width_;
  bool joined_;
};

}  // namespace kiln::kernels

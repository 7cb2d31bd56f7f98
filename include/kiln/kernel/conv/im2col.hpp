#pragma once

#include "kiln/kernel/conv/image_layout.hpp"
#include "kiln/kernel/conv/problem.hpp"
#include "kiln/kernel/gemm/gemm.hpp"

namespace kiln::kernels {

/// Convolution as a GEMM of the unpacked weights with panels of output pixels: of the input itself for 1x1 kernels,
/// otherwise gathered per panel (im2col) into the worker's scratch.
template <class T> class im2col_convolution {
 public:
  /// `to`: the strides of the output.
  im2col_convolution(const conv_problem& problem, const nchw_strides& to)
      : p_(problem),
        out_{problem.output(0), problem.output(1), problem.output(2)},
        to_(to),
        rows_(std::gcd(problem.group_outputs(), to.each)) {
    for (std::int64_t row = 0; row < p_.out_channels; row += rows_) starts_.push_back(to.at(0, row));
    for (std::int64_t x = 0; x < p_.kernel[2]; ++x)
      columns_.emplace_back(x * p_.dilation[2] - p_.pad_begin[2], p_.stride[2], p_.input[2], out_[2]);
  }

  /// Whether rows of panels are mostly copies of adjacent elements, so that a panel may be gathered more than once.
  static constexpr bool gathers_whole_rows(const conv_problem& p) {
    return p.stride[2] == 1 && p.output(2) >= register_tile<T>::width;
  }

  /// Elements of scratch for each worker.
  std::int64_t scratch_size() const { return gemm_unpacked_scratch_size<T>(rows_, p_.output_pixels(), p_.depth(), 1); }

  template <class Epilogue>
  void run(thread_pool& pool, const T* input, const T* weights, T* output, T* scratch, Epilogue&& epilogue) const {
    gemm_problem<T> g{.m = rows_, .n = p_.output_pixels(), .k = p_.depth()};
    g.a = weights;
    g.a_row = p_.depth();
    g.a_batch = g.m * p_.depth();
    g.a_period = static_cast<std::int64_t>(starts_.size());
    g.b = input;
    g.b_row = p_.input_pixels();
    g.b_batch = p_.group_inputs() * p_.input_pixels();
    g.b_repeats = p_.group_outputs() / rows_;
    g.c = output;
    g.c_row = to_.channel;
    g.c_at = starts_.data();
    g.c_batch = to_.image;
    g.batch = p_.batch * g.a_period;
    const of_channels<std::remove_reference_t<Epilogue>> of_rows{epilogue, p_.out_channels};
    if (p_.pointwise()) return gemm_unpacked(pool, g, scratch, of_rows);
    const gathered_right right{this, &g, scratch};
    T* const more = scratch + packed_panels_size<T>(g.k, pool.size());
    if (multiplied_on_matrix_unit(pool, g, plain_left<T>{&g}, right, more, g.m, of_rows)) return;
    const gemm_split<T> split(g, false, pool.size(), gathers_whole_rows(p_) ? 64 : 192, g.m);
    multiply(pool, g, depth_block<T>(g.k), split, plain_left<T>{&g}, right, of_rows);
  }

 private:
  // A convolution's epilogue as that of a GEMM whose rows are channels.
  template <class Epilogue> struct of_channels {
    Epilogue& epilogue;
    std::int64_t channels;

    void operator()(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, T* c,
                    std::ptrdiff_t c_row) const {
      const std::int64_t image = image_of(row0);
      epilogue(image, row0 - image * channels, rows, col0, cols, c, c_row);
    }
    bool in_registers(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols,
                      tile_epilogue<T>& to) const {
      const std::int64_t image = image_of(row0);
      return applies_in_registers(epilogue, image, row0 - image * channels, rows, col0, cols, to);
    }
    // no division, which takes as long as a short tile, in the first image
    std::int64_t image_of(std::int64_t row) const { return row < channels ? 0 : row / channels; }
  };
  struct gathered_right {
    const im2col_convolution* self;
    const gemm_problem<T>* g;
    T* scratch;
    static constexpr bool packed = false;

    panel_block<T> block(std::int64_t matrix, std::int64_t pixel, std::int64_t pixels, std::int64_t row,
                         std::int64_t depth, unsigned worker) const {
      const std::int64_t width = round_up(pixels, native_lanes<T>);
      T* const panel = scratch + worker * depth_block<T>(g->k) * register_tile<T>::width;
      self->gather(panel, width, g->b + g->b_of(matrix) * g->b_batch, pixel, pixels, row, depth);
      return {panel, width};
    }
    coming_block<T> peek(std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t) const { return {}; }
  };

  void gather(T* panel, std::int64_t width, const T* image, std::int64_t pixel, std::int64_t pixels, std::int64_t k0,
              std::int64_t depth) const {
    const std::int64_t input_pixels = p_.input_pixels();
    const std::int64_t x0 = pixel % out_[2];
    const std::int64_t y0 = pixel / out_[2] % out_[1];
    const std::int64_t z0 = pixel / out_[2] / out_[1];
    std::int64_t kx = k0 % p_.kernel[2];
    std::int64_t ky = k0 / p_.kernel[2] % p_.kernel[1];
    std::int64_t kz = k0 / p_.kernel[2] / p_.kernel[1] % p_.kernel[0];
    const T* plane = image + k0 / p_.taps() * input_pixels;
    for (std::int64_t i = 0; i < depth; ++i) {
      T* out = panel + i * width;
      fill_zero(out + width - native_lanes<T>, native_lanes<T>);
      std::int64_t x = x0;
      std::int64_t y = y0;
      std::int64_t z = z0;
      for (std::int64_t left = pixels; left > 0;) {
        const std::int64_t count = std::min(out_[2] - x, left);
        const std::int64_t iy = y * p_.stride[1] + ky * p_.dilation[1] - p_.pad_begin[1];
        const std::int64_t iz = z * p_.stride[0] + kz * p_.dilation[0] - p_.pad_begin[0];
        if (iy >= 0 && iy < p_.input[1] && iz >= 0 && iz < p_.input[0]) {
          const T* const row = plane + (iz * p_.input[1] + iy) * p_.input[2];
          const read_range& columns = columns_[static_cast<std::size_t>(kx)];
          const std::ptrdiff_t later = columns.first + x * p_.stride[2] + 4 * input_pixels;
          for (std::int64_t j = 0; j < count * p_.stride[2]; j += 64 / static_cast<std::int64_t>(sizeof(T)))
            if (kx == 0 && input_pixels > 0) __builtin_prefetch(row + later + j);
          copy_read_range(out, row, columns, p_.stride[2], x, x + count);
        } else {
          fill_zero(out, count);
        }
        out += count;
        left -= count;
        x = 0;
        if (++y == out_[1]) y = 0, ++z;
      }
      if (++kx < p_.kernel[2]) continue;
      kx = 0;
      if (++ky < p_.kernel[1]) continue;
      ky = 0;
      if (++kz < p_.kernel[0]) continue;
      kz = 0;
      plane += input_pixels;
    }
  }

  conv_problem p_;
  conv_problem::extents out_;
  nchw_strides to_;
  std::int64_t rows_;                   // of a GEMM: channels of one group at a constant stride
  std::vector<std::ptrdiff_t> starts_;  // where each GEMM of an image is written
  std::vector<read_range> columns_;     // of each kernel column
};

}  // namespace kiln::kernels

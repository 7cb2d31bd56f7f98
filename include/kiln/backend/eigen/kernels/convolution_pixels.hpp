#pragma once

#include "kiln/backend/eigen/kernels/convolution_problem.hpp"
#include "kiln/backend/eigen/kernels/gemm.hpp"

namespace kiln::kernels {

/// Convolution as a product of the weights as they are with panels of output pixels: of the input itself for 1x1
/// kernels, else gathered per panel ("im2col") into the worker's scratch.
template <class T>
class pixel_convolution {
 public:
  explicit pixel_convolution(const conv_problem& problem) : p_(problem) {}

  /// Elements of scratch for each worker.
  std::int64_t scratch_size() const { return gemm_scratch_size<T>(p_.depth(), 1); }

  template <class Epilogue>
  void run(thread_pool& pool, const T* input, const T* weights, T* output, T* scratch, Epilogue&& epilogue) const {
    gemm_problem<T> g{.m = p_.group_outputs(), .n = p_.output_pixels(), .k = p_.depth()};
    g.a = weights;
    g.a_row = p_.depth();
    g.a_batch = p_.group_outputs() * p_.depth();
    g.a_period = p_.groups;
    g.b = input;
    g.b_row = p_.input_pixels();
    g.b_batch = p_.group_inputs() * p_.input_pixels();
    g.c = output;
    g.c_row = g.n;
    g.c_batch = g.m * g.n;
    g.batch = p_.batch * p_.groups;
    const auto finish = [&](std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, T* c,
                            std::ptrdiff_t c_row) {
      epilogue(row0 / p_.out_channels, row0 % p_.out_channels, rows, col0, cols, c, c_row);
    };
    if (p_.pointwise()) return gemm_unpacked(pool, g, scratch, finish);
    const gemm_split<T> split(g.m, g.n, g.batch, pool.size(), 192, g.m);
    multiply(pool, g, depth_block<T>(g.k), split, gathered_right{this, &g, scratch}, finish);
  }

 private:
  struct gathered_right {
    const pixel_convolution* self;
    const gemm_problem<T>* g;
    T* scratch;

    panel_block<T> block(std::int64_t image, std::int64_t pixel, std::int64_t row, std::int64_t depth,
                         unsigned worker) const {
      const std::int64_t width = panel_width<T>(pixel, g->n);
      T* const panel = scratch + worker * depth_block<T>(g->k) * register_tile<T>::width;
      self->gather(panel, width, g->b + image * g->b_batch, pixel,
                   std::min<std::int64_t>(register_tile<T>::width, g->n - pixel), row, depth);
      return {panel, width};
    }
    const T* peek(std::int64_t, std::int64_t, std::int64_t) const { return nullptr; }
  };

  void gather(T* panel, std::int64_t width, const T* image, std::int64_t pixel, std::int64_t pixels, std::int64_t k0,
              std::int64_t depth) const {
    const std::int64_t out_w = p_.output(2);
    const std::int64_t out_h = p_.output(1);
    for (std::int64_t i = 0; i < depth; ++i) {
      const std::int64_t k = k0 + i;
      const std::int64_t kx = k % p_.kernel[2];
      const std::int64_t ky = k / p_.kernel[2] % p_.kernel[1];
      const std::int64_t kz = k / p_.kernel[2] / p_.kernel[1] % p_.kernel[0];
      const T* const plane = image + k / p_.taps() * p_.input_pixels();
      T* const out = panel + i * width;
      const std::int64_t left = kx * p_.dilation[2] - p_.pad_begin[2];
      // Outputs x in [low, high) read inside the row.
      const std::int64_t low =
          std::clamp<std::int64_t>(ceil_div(std::max<std::int64_t>(-left, 0), p_.stride[2]), 0, out_w);
      const std::int64_t room = p_.input[2] - left;
      const std::int64_t high = room <= 0 ? low : std::clamp<std::int64_t>(ceil_div(room, p_.stride[2]), low, out_w);
      std::int64_t at = 0;
      std::int64_t x = pixel % out_w;
      std::int64_t y = pixel / out_w % out_h;
      std::int64_t z = pixel / out_w / out_h;
      while (at < pixels) {
        const std::int64_t count = std::min(out_w - x, pixels - at);
        const std::int64_t iy = y * p_.stride[1] + ky * p_.dilation[1] - p_.pad_begin[1];
        const std::int64_t iz = z * p_.stride[0] + kz * p_.dilation[0] - p_.pad_begin[0];
        const bool inside = iy >= 0 && iy < p_.input[1] && iz >= 0 && iz < p_.input[0];
        const std::int64_t from = inside ? std::clamp(low, x, x + count) : x + count;
        const std::int64_t to = inside ? std::clamp(high, from, x + count) : x + count;
        for (std::int64_t j = x; j < from; ++j) out[at + j - x] = T(0);
        if (to > from)
          copy_strided(out + at + from - x, plane + (iz * p_.input[1] + iy) * p_.input[2] + from * p_.stride[2] + left,
                       p_.stride[2], to - from);
        for (std::int64_t j = to; j < x + count; ++j) out[at + j - x] = T(0);
        at += count;
        x = 0;
        if (++y == out_h) y = 0, ++z;
      }
      for (; at < width; ++at) out[at] = T(0);
    }
  }

  conv_problem p_;
};

}  // namespace kiln::kernels

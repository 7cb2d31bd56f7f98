#include <algorithm>

#include "kiln/backend/eigen/isa.hpp"
#include "kiln/backend/eigen/lower_generic.hpp"
#include "kiln/core/argument.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

// GEMM and col2im: a GEMM of the weights and a band of input rows gives what each input element adds to each tap of
// each filter, and each filter's task adds these to the result (col2im). A band is small enough for its columns to stay
// in the caches.
class deconvolution_kernel final : public kernel {
 public:
  deconvolution_kernel(const op::deconvolution& attributes, const kernel_request& r) : attributes_(attributes) {
    const literal* const weights = r.constants[1];
    if (!weights || !r.constant_layouts[1].dense()) return;
    const dims& lens = r.inputs[1].lens;
    const std::int64_t all = product(to_ints(lens)), channels = lens[0].value() / attributes_.group;
    if (all == 0) return;
    packed_ = r.packed(static_cast<std::size_t>(all) * sizeof(float), [&](std::byte* memory) {
      const argument aligned(*weights);
      const float* const from = aligned.as<float>().data() + r.constant_layouts[1].offset.value();
      auto* const to = reinterpret_cast<float*>(memory);
      const std::int64_t columns = all / lens[0].value();  // of a group: its filters' taps
      r.pool->parallel_for(attributes_.group * columns, [&](std::int64_t task, unsigned) {
        const std::int64_t g = task / columns, column = task % columns;
        for (std::int64_t c = 0; c < channels; ++c)
          to[task * channels + c] = from[(g * channels + c) * columns + column];
      });
    });
  }
  std::string name() const override { return std::string("deconvolution") + (packed_ ? " (packed)" : ""); }
  bool packed_input(std::size_t i) const override { return packed_ && i == 1; }
  std::size_t packed_bytes() const override { return packed_.size(); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const sizes s(attributes_, in[0], in[1], out[0]);
    const std::int64_t columns = kernels::round_up(s.columns * s.band * s.in[2], 16);
    const std::int64_t gemm =
        kiln_eigen_isa()->gemm_unpacked_scratch_floats(s.columns, s.band * s.in[2], s.channels, threads);
    return static_cast<std::size_t>(columns + gemm) * sizeof(float);
  }
  void run(const launch& l) const override {
    const sizes s(attributes_, l.in[0], l.in[1], l.out[0]);
    auto* const y = l.out[0].as<float>();
    std::fill_n(y, l.out[0].elements(), 0.0F);
    const std::int64_t rows = s.in[0] * s.in[1], pixels = rows * s.in[2];
    if (pixels == 0 || l.out[0].elements() == 0 || s.channels == 0) return;
    auto* const columns = reinterpret_cast<float*>(l.scratch.data());
    auto* const scratch = columns + kernels::round_up(s.columns * s.band * s.in[2], 16);
    for (std::int64_t entry = 0; entry < s.batch * attributes_.group; ++entry)
      for (std::int64_t row = 0; row < rows; row += s.band) {
        const std::int64_t group = entry % attributes_.group, count = std::min(s.band, rows - row);
        kernels::gemm_problem<float> p;
        p.m = s.columns, p.n = count * s.in[2], p.k = s.channels;
        if (packed_) {
          p.a = reinterpret_cast<const float*>(packed_.data()) + group * s.columns * s.channels;
          p.a_row = s.channels;
        } else {
          p.a = l.in[1].as<const float>() + group * s.channels * s.columns;
          p.a_row = 1, p.a_col = s.columns;
        }
        p.b = l.in[0].as<const float>() + entry * s.channels * pixels + row * s.in[2];
        p.b_row = pixels;
        p.c = columns, p.c_row = p.n;
        kiln_eigen_isa()->gemm_unpacked(*l.pool, p, scratch, {});
        l.pool->parallel_for(s.filters, [&](std::int64_t filter, unsigned) {
          col2im(s, columns + filter * s.taps() * p.n, p.n, row, count,
                 y + (entry * s.filters + filter) * s.out[0] * s.out[1] * s.out[2]);
        });
      }
  }

 private:
  // Missing spatial dims have extent 1.
  struct sizes {
    std::int64_t batch, channels, filters, columns, band;
    std::int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1},
                 dilation[3] = {1, 1, 1}, begin[3] = {};

    sizes(const op::deconvolution& d, const tensor& x, const tensor& w, const tensor& y)
        : batch(x.lens[0]), channels(x.lens[1] / d.group), filters(w.lens[1]) {
      for (std::size_t k = 0, axes = x.rank() - 2; k < axes; ++k) {
        const std::size_t to = 3 - axes + k;
        in[to] = x.lens[k + 2], out[to] = y.lens[k + 2], kernel[to] = w.lens[k + 2];
        if (!d.stride.empty()) stride[to] = d.stride[k];
        if (!d.dilation.empty()) dilation[to] = d.dilation[k];
        if (!d.pads.empty()) begin[to] = d.pads[k];
      }
      columns = filters * taps();
      constexpr std::int64_t band_floats = 512 * 1024;
      band = std::clamp<std::int64_t>(band_floats / std::max<std::int64_t>(1, columns * in[2]), 1,
                                      std::max<std::int64_t>(1, in[0] * in[1]));
    }
    std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
    // The output index along a dim that a tap of an input element adds to.
    std::int64_t reached(int dim, std::int64_t element, std::int64_t tap) const {
      return element * stride[dim] + tap * dilation[dim] - begin[dim];
    }
  };

  // Adds one filter's columns to its result `y`: a column for each tap, `step` elements apart, of `count` input rows
  // from `row` on.
  static void col2im(const sizes& s, const float* column, std::int64_t step, std::int64_t row, std::int64_t count,
                     float* y) {
    for (std::int64_t i = 0; i < s.kernel[0]; ++i)
      for (std::int64_t j = 0; j < s.kernel[1]; ++j)
        for (std::int64_t k = 0; k < s.kernel[2]; ++k, column += step) {
          const std::int64_t stride = s.stride[2], shift = s.reached(2, 0, k);
          const std::int64_t first = shift < 0 ? kernels::ceil_div(-shift, stride) : 0;
          const std::int64_t last =
              shift < s.out[2] ? std::min(s.in[2], kernels::ceil_div(s.out[2] - shift, stride)) : 0;
          for (std::int64_t r = 0; r < count; ++r) {
            const std::int64_t a = s.reached(0, (row + r) / s.in[1], i), b = s.reached(1, (row + r) % s.in[1], j);
            if (a < 0 || a >= s.out[0] || b < 0 || b >= s.out[1]) continue;
            const float* const from = column + r * s.in[2];
            float* const to = y + (a * s.out[1] + b) * s.out[2];
            for (std::int64_t x = first; x < last; ++x) to[x * stride + shift] += from[x];
          }
        }
  }

  op::deconvolution attributes_;
  buffer packed_;
};

}  // namespace

std::unique_ptr<kernel> lower_deconvolution(const kernel_request& r) {
  const auto* const op = r.instruction.op.get_if<op::deconvolution>();
  if (!op || r.inputs[0].type != dtype::f32 || r.inputs[0].rank() > 5) return nullptr;
  return std::make_unique<deconvolution_kernel>(*op, r);
}

}  // namespace kiln::eigen

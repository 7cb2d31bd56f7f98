#include <algorithm>

#include "kiln/backend/eigen/isa.hpp"
#include "kiln/backend/eigen/lower_generic.hpp"
#include "kiln/core/argument.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

// GEMM and col2im: a GEMM of the weights and a band of input rows gives what each input element adds to each tap of
// each filter, and each filter's task adds these to the result (col2im). A band is small enough for its columns to stay
// in the caches. Where a filter reads one channel, its columns are the channel times a weight each; where each of its
// taps has a channel of its own and weight 1 (ONNX Col2Im), they are the channels.
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
    const std::int64_t columns = all / lens[0].value();
    const auto* const packed = reinterpret_cast<const float*>(packed_.data());
    plain_columns_ = columns == channels && channels > 1;
    for (std::int64_t i = 0; plain_columns_ && i < all; ++i)
      plain_columns_ = packed[i] == (i / channels % columns == i % channels ? 1.0F : 0.0F);
  }
  std::string name() const override { return std::string("deconvolution") + (packed_ ? " (packed)" : ""); }
  bool packed_input(std::size_t i) const override { return packed_ && i == 1; }
  std::size_t packed_bytes() const override { return packed_.size(); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const sizes s(attributes_, in[0], in[1], out[0]);
    if (s.channels == 1 || plain_columns_) return 0;
    const std::int64_t columns = kernels::round_up(s.columns * s.band * s.in[2], 16);
    const std::int64_t gemm =
        kiln_eigen_isa()->gemm_unpacked_scratch_floats(s.columns, s.band * s.in[2], s.channels, threads);
    return static_cast<std::size_t>(columns + gemm) * sizeof(float);
  }
  void run(const launch& l) const override {
    const sizes s(attributes_, l.in[0], l.in[1], l.out[0]);
    auto* const y = l.out[0].as<float>();
    const std::int64_t rows = s.in[0] * s.in[1], pixels = rows * s.in[2];
    if (l.out[0].elements() == 0) return;
    if (pixels == 0 || s.channels == 0) {
      std::fill_n(y, l.out[0].elements(), 0.0F);
      return;
    }
    const auto* const weights = packed_ ? reinterpret_cast<const float*>(packed_.data()) : l.in[1].as<const float>();
    const isa_table& isa = *kiln_eigen_isa();
    if (s.channels == 1 || plain_columns_) {
      const std::int64_t filters = s.batch * attributes_.group * s.filters;
      l.pool->parallel_for(filters, [&](std::int64_t filter, unsigned) {
        kernels::column_problem p = s.of_filter;
        const auto* const x = l.in[0].as<const float>();
        if (plain_columns_) {
          p.columns = x + filter * s.taps() * pixels;
          p.step = pixels;
        } else {
          p.columns = x + filter / s.filters * pixels;
          p.weights = weights + filter % (attributes_.group * s.filters) * s.taps();
        }
        p.rows = rows;
        p.y = y + filter * s.result;
        isa.add_columns(p);
      });
      return;
    }
    auto* const columns = reinterpret_cast<float*>(l.scratch.data());
    auto* const scratch = columns + kernels::round_up(s.columns * s.band * s.in[2], 16);
    for (std::int64_t entry = 0; entry < s.batch * attributes_.group; ++entry)
      for (std::int64_t row = 0; row < rows; row += s.band) {
        const std::int64_t group = entry % attributes_.group, count = std::min(s.band, rows - row);
        kernels::gemm_problem<float> p;
        p.m = s.columns, p.n = count * s.in[2], p.k = s.channels;
        if (packed_) {
          p.a = weights + group * s.columns * s.channels;
          p.a_row = s.channels;
        } else {
          p.a = weights + group * s.channels * s.columns;
          p.a_row = 1, p.a_col = s.columns;
        }
        p.b = l.in[0].as<const float>() + entry * s.channels * pixels + row * s.in[2];
        p.b_row = pixels;
        p.c = columns, p.c_row = p.n;
        isa.gemm_unpacked(*l.pool, p, scratch, {});
        l.pool->parallel_for(s.filters, [&](std::int64_t filter, unsigned) {
          kernels::column_problem one = s.of_filter;
          one.columns = columns + filter * s.taps() * p.n;
          one.step = p.n;
          one.row = row, one.rows = count;
          one.y = y + (entry * s.filters + filter) * s.result;
          isa.add_columns(one);
        });
      }
  }

 private:
  // Missing spatial dims have extent 1.
  struct sizes {
    std::int64_t batch, channels, filters, columns, band, result;
    kernels::column_problem of_filter;
    std::int64_t (&in)[3] = of_filter.in;

    sizes(const op::deconvolution& d, const tensor& x, const tensor& w, const tensor& y)
        : batch(x.lens[0]), channels(x.lens[1] / d.group), filters(w.lens[1]) {
      kernels::column_problem& f = of_filter;
      for (std::size_t k = 0, axes = x.rank() - 2; k < axes; ++k) {
        const std::size_t to = 3 - axes + k;
        f.in[to] = x.lens[k + 2], f.out[to] = y.lens[k + 2], f.kernel[to] = w.lens[k + 2];
        if (!d.stride.empty()) f.stride[to] = d.stride[k];
        if (!d.dilation.empty()) f.dilation[to] = d.dilation[k];
        if (!d.pads.empty()) f.begin[to] = d.pads[k];
      }
      columns = filters * taps();
      result = f.out[0] * f.out[1] * f.out[2];
      constexpr std::int64_t band_floats = 512 * 1024;
      band = std::clamp<std::int64_t>(band_floats / std::max<std::int64_t>(1, columns * in[2]), 1,
                                      std::max<std::int64_t>(1, in[0] * in[1]));
    }
    sizes(const sizes&) = delete;
    std::int64_t taps() const { return of_filter.taps(); }
  };

  op::deconvolution attributes_;
  buffer packed_;
  bool plain_columns_ = false;  // the weights are those of an identity
};

}  // namespace

std::unique_ptr<kernel> lower_deconvolution(const kernel_request& r) {
  const auto* const op = r.instruction.op.get_if<op::deconvolution>();
  if (!op || r.inputs[0].type != dtype::f32 || r.inputs[0].rank() > 5) return nullptr;
  constexpr std::int64_t most_stride = 4096;  // sums of a row's elements that many apart stay in L1
  for (const std::int64_t stride : op->stride)
    if (stride > most_stride) return nullptr;
  return std::make_unique<deconvolution_kernel>(*op, r);
}

}  // namespace kiln::eigen

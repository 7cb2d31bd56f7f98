#include "kiln/backend/eigen/affine.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

class pooling_kernel final : public kernel {
 public:
  explicit pooling_kernel(const op::pooling& attributes) : attributes_(attributes) {}
  std::string name() const override { return std::string(to_string(attributes_.mode)) + " pooling"; }
  stride_support input_strides(std::size_t) const override { return stride_support::images; }
  stride_support output_strides(std::size_t) const override { return stride_support::apart; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    return converts(in[0], out[0]) ? static_cast<std::size_t>(out[0].elements()) * sizeof(float) : 0;
  }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (y.elements() == 0) return;
    if (y.dense() || image_layout_of(y).channels_last) return run(l, x, y);
    for (std::int64_t i = 0; i < y.lens[0]; ++i) run(l, image(x, i), image(y, i));
  }

 private:
  static tensor image(tensor images, std::int64_t i) {
    images.data += i * images.strides[0] * static_cast<std::int64_t>(sizeof(float));
    images.lens[0] = 1;
    return images;
  }

  void run(const launch& l, const tensor& x, const tensor& y) const {
    kernels::pooling_problem p;
    p.x = x.as<const float>();
    p.y = y.as<float>();
    p.planes = x.lens[0] * x.lens[1];
    p.average = attributes_.mode == op::pooling_mode::average;
    p.count_padding = attributes_.count_include_pad;
    const std::size_t axes = x.rank() - 2;
    for (std::size_t d = 0; d < axes; ++d) {
      const std::size_t to = 3 - axes + d;
      p.input[to] = x.lens[d + 2];
      p.output[to] = y.lens[d + 2];
      p.window[to] = attributes_.lengths[d];
      if (!attributes_.stride.empty()) p.stride[to] = attributes_.stride[d];
      if (!attributes_.dilation.empty()) p.dilation[to] = attributes_.dilation[d];
      if (!attributes_.pads.empty()) {
        p.pad_begin[to] = attributes_.pads[d];
        p.pad_end[to] = attributes_.pads[axes + d];
      }
    }
    const kernels::image_layout from = image_layout_of(x), to = image_layout_of(y);
    kernels::image_layout made = to;
    if (converts(x, y)) {
      p.y = reinterpret_cast<float*>(l.scratch.data());
      made = {from.channels_last, x.lens[1]};
    }
    if (from.channels_last)
      kiln_eigen_isa()->pool_images(*l.pool, p, {x.lens[0], x.lens[1], from.step, made.step});
    else
      kiln_eigen_isa()->pool(*l.pool, p);
    if (converts(x, y))
      kiln_eigen_isa()->convert_images(*l.pool, x.lens[0], x.lens[1], p.output[0] * p.output[1] * p.output[2], p.y,
                                       made, y.as<float>(), to);
  }

  // The result, smaller than the image as a rule, is converted where it does not lie as the image does.
  static bool converts(const tensor& x, const tensor& y) {
    return image_layout_of(x).channels_last != image_layout_of(y).channels_last;
  }

  op::pooling attributes_;
};

class lrn_kernel final : public kernel {
 public:
  lrn_kernel(const op::lrn& attributes, bool channels_last) : attributes_(attributes), last_(channels_last) {}
  std::string name() const override { return "lrn"; }
  stride_support input_strides(std::size_t) const override { return support(); }
  stride_support output_strides(std::size_t) const override { return support(); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    return converts(in[0], out[0]) ? static_cast<std::size_t>(out[0].elements()) * sizeof(float) : 0;
  }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (x.elements() == 0) return;
    kernels::lrn_problem p;
    p.x = x.as<const float>();
    p.y = y.as<float>();
    p.batch = x.lens[0];
    p.channels = x.lens[1];
    p.pixels = x.elements() / (p.batch * p.channels);
    p.size = attributes_.size;
    p.alpha = static_cast<float>(attributes_.alpha);
    p.beta = static_cast<float>(attributes_.beta);
    p.bias = static_cast<float>(attributes_.bias);
    const kernels::image_layout from = image_layout_of(x), to = image_layout_of(y);
    kernels::image_layout made = to;
    if (converts(x, y)) {
      p.y = reinterpret_cast<float*>(l.scratch.data());
      made = {from.channels_last, x.lens[1]};
    }
    if (from.channels_last) p.x_step = from.step, p.y_step = made.step;
    kiln_eigen_isa()->lrn(*l.pool, p);
    if (converts(x, y))
      kiln_eigen_isa()->convert_images(*l.pool, p.batch, p.channels, p.pixels, p.y, made, y.as<float>(), to);
  }

 private:
  stride_support support() const { return last_ ? stride_support::images : stride_support::dense; }
  static bool converts(const tensor& x, const tensor& y) {
    return image_layout_of(x).channels_last != image_layout_of(y).channels_last;
  }

  op::lrn attributes_;
  bool last_;  // the result is wanted with its channels last
};

}  // namespace

std::unique_ptr<kernel> lower_window(const kernel_request& r) {
  if (r.inputs.empty() || r.inputs[0].type != dtype::f32) return nullptr;
  if (const auto* pool = r.instruction.op.get_if<op::pooling>()) {
    if (pool->mode == op::pooling_mode::lp || r.inputs[0].rank() < 3 || r.inputs[0].rank() > 5) return nullptr;
    return std::make_unique<pooling_kernel>(*pool);
  }
  if (const auto* lrn = r.instruction.op.get_if<op::lrn>())
    return std::make_unique<lrn_kernel>(*lrn, r.result_channels_last);
  return nullptr;
}

}  // namespace kiln::eigen

#include "kiln/backend/eigen/affine.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

// The result, smaller than the image as a rule, is converted where it does not lie as the image does.
class window_result {
 public:
  window_result(const tensor& x, const tensor& y, std::span<std::byte> scratch)
      : y_(y), from_(image_layout_of(x)), to_(image_layout_of(y)), made_(to_), at_(y.as<float>()) {
    if (!to_.channels_last && !y.dense())
      to_.planes = made_.planes = kernels::plane_steps{y.lens[1], y.strides[0], 0, y.strides[1]};
    if (!converts()) return;
    at_ = reinterpret_cast<float*>(scratch.data());
    made_ = {from_.channels_last, x.lens[1]};
  }
  static std::size_t scratch_bytes(const tensor& x, const tensor& y) {
    return window_result(x, y, {}).converts() ? static_cast<std::size_t>(y.elements()) * sizeof(float) : 0;
  }

  const kernels::image_layout& from() const { return from_; }
  /// Where and how the kernel writes it.
  float* at() const { return at_; }
  const kernels::image_layout& made() const { return made_; }
  void finish(thread_pool& pool) const {
    if (!converts()) return;
    std::int64_t pixels = 1;
    for (std::size_t d = 2; d < y_.rank(); ++d) pixels *= y_.lens[d];
    kiln_eigen_isa()->convert_images(pool, y_.lens[0], y_.lens[1], pixels, at_, made_, y_.as<float>(), to_);
  }

 private:
  bool converts() const { return from_.channels_last != to_.channels_last; }

  const tensor& y_;
  kernels::image_layout from_, to_, made_;
  float* at_;
};

class pooling_kernel final : public kernel {
 public:
  explicit pooling_kernel(const op::pooling& attributes) : attributes_(attributes) {}
  std::string name() const override { return std::string(to_string(attributes_.mode)) + " pooling"; }
  stride_support input_strides(std::size_t) const override { return stride_support::images; }
  stride_support output_strides(std::size_t) const override { return stride_support::apart; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    return window_result::scratch_bytes(in[0], out[0]);
  }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (y.elements() == 0) return;
    const window_result result(x, y, l.scratch);
    kernels::pooling_problem p;
    p.x = x.as<const float>();
    p.y = result.at();
    p.planes = x.lens[0] * x.lens[1];
    if (result.made().planes) p.image_planes = x.lens[1], p.y_image = result.made().planes->image;
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
    if (result.from().channels_last)
      kiln_eigen_isa()->pool_images(*l.pool, p, {x.lens[0], x.lens[1], result.from().step, result.made().step});
    else
      kiln_eigen_isa()->pool(*l.pool, p);
    result.finish(*l.pool);
  }

 private:
  op::pooling attributes_;
};

// Means of whole images whose channels are last, as one window: vectors run over channels, and each pixel's are read in
// one go, in half the time of a reduction whose rows lie side by side.
class image_mean_kernel final : public kernel {
 public:
  std::string name() const override { return "mean of images"; }
  stride_support input_strides(std::size_t) const override { return stride_support::images; }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (y.elements() == 0) return;
    kernels::pooling_problem p;
    p.x = x.as<const float>();
    p.y = y.as<float>();
    p.planes = x.lens[0] * x.lens[1];
    p.average = true;
    for (std::size_t d = 2; d < x.rank(); ++d) p.input[d + 3 - x.rank()] = p.window[d + 3 - x.rank()] = x.lens[d];
    const kernels::image_layout from = image_layout_of(x);
    if (from.channels_last)
      kiln_eigen_isa()->pool_images(*l.pool, p, {x.lens[0], x.lens[1], from.step, x.lens[1]});
    else
      kiln_eigen_isa()->pool(*l.pool, p);
  }

  // Whether it serves: fewer channels would leave workers idle, and images of symbolic extents may be empty.
  static bool serves(const kernel_request& r, const op::reduce_mean& mean) {
    constexpr std::int64_t least = 256;
    const shape& x = r.inputs[0];
    if (!r.channels_last[0] || x.rank() < 3 || x.rank() > 5 || mean.axes.size() != x.rank() - 2) return false;
    for (std::size_t d = 2; d < x.rank(); ++d)
      if (!x.lens[d].is_constant() || x.lens[d].value() < 1 || mean.axes[d - 2] != static_cast<std::int64_t>(d))
        return false;
    return x.lens[1].is_constant() && x.lens[1].value() >= least;
  }
};

class lrn_kernel final : public kernel {
 public:
  lrn_kernel(const op::lrn& attributes, bool channels_last) : attributes_(attributes), last_(channels_last) {}
  std::string name() const override { return "lrn"; }
  stride_support input_strides(std::size_t) const override { return support(); }
  stride_support output_strides(std::size_t) const override { return support(); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    return window_result::scratch_bytes(in[0], out[0]);
  }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (x.elements() == 0) return;
    const window_result result(x, y, l.scratch);
    kernels::lrn_problem p;
    p.x = x.as<const float>();
    p.y = result.at();
    p.batch = x.lens[0];
    p.channels = x.lens[1];
    p.pixels = x.elements() / (p.batch * p.channels);
    p.size = attributes_.size;
    p.alpha = static_cast<float>(attributes_.alpha);
    p.beta = static_cast<float>(attributes_.beta);
    p.bias = static_cast<float>(attributes_.bias);
    if (result.from().channels_last) p.x_step = result.from().step, p.y_step = result.made().step;
    kiln_eigen_isa()->lrn(*l.pool, p);
    result.finish(*l.pool);
  }

 private:
  stride_support support() const { return last_ ? stride_support::images : stride_support::dense; }

  op::lrn attributes_;
  bool last_;  // the result is wanted with its channels last
};

}  // namespace

// The mean that an instruction is, bare or by itself in a group.
static const op::reduce_mean* reduced_mean(const kernel_request& r) {
  const auto* fused = r.instruction.op.get_if<op::fused>();
  if (!fused) return r.instruction.op.get_if<op::reduce_mean>();
  const module_graph& body = r.whole.module(fused->body);
  return body.size() == 2 && body[1].kind == instruction_kind::op ? body[1].op.get_if<op::reduce_mean>() : nullptr;
}

std::unique_ptr<kernel> lower_window(const kernel_request& r) {
  if (r.inputs.empty() || r.inputs[0].type != dtype::f32) return nullptr;
  if (const auto* pool = r.instruction.op.get_if<op::pooling>()) {
    if (pool->mode == op::pooling_mode::lp || r.inputs[0].rank() < 3 || r.inputs[0].rank() > 5) return nullptr;
    return std::make_unique<pooling_kernel>(*pool);
  }
  if (const auto* mean = reduced_mean(r); mean && image_mean_kernel::serves(r, *mean))
    return std::make_unique<image_mean_kernel>();
  if (const auto* lrn = r.instruction.op.get_if<op::lrn>())
    return std::make_unique<lrn_kernel>(*lrn, r.result_channels_last);
  return nullptr;
}

}  // namespace kiln::eigen

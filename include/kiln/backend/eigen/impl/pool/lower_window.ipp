#include "kiln/backend/eigen/affine.hpp"
#include "kiln/backend/eigen/double_pooling.hpp"
#include "kiln/backend/eigen/integers.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/backend/eigen/rows.hpp"
#include "kiln/lower/contraction.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

// Where a kernel that writes the layout it reads puts its result. A result of the other layout is transposed after it:
// as a rule it is smaller than what was read.
class window_result {
 public:
  window_result(const tensor& x, const tensor& y, std::span<std::byte> scratch)
      : y_(y), from_(image_layout_of(x)), to_(image_layout_of(y)), written_(to_), at_(y.as<float>()) {
    if (!to_.nhwc && !y.dense())
      to_.nchw = written_.nchw = kernels::nchw_strides{y.lens[1], y.strides[0], 0, y.strides[1]};
    if (!transposes()) return;
    at_ = reinterpret_cast<float*>(scratch.data());
    written_ = {from_.nhwc, x.lens[1]};
  }
  static std::size_t scratch_bytes(const tensor& x, const tensor& y) {
    return window_result(x, y, {}).transposes() ? static_cast<std::size_t>(y.elements()) * sizeof(float) : 0;
  }

  const kernels::image_layout& from() const { return from_; }
  /// Where the kernel writes, and in which layout.
  float* at() const { return at_; }
  const kernels::image_layout& written() const { return written_; }
  void transpose(thread_pool& pool) const {
    if (!transposes()) return;
    std::int64_t pixels = 1;
    for (std::size_t d = 2; d < y_.rank(); ++d) pixels *= y_.lens[d];
    kiln_eigen_isa()->convert_images(pool, y_.lens[0], y_.lens[1], pixels, at_, written_, y_.as<float>(), to_);
  }

 private:
  bool transposes() const { return from_.nhwc != to_.nhwc; }

  const tensor& y_;
  kernels::image_layout from_, to_, written_;
  float* at_;
};

class pooling_kernel final : public kernel {
 public:
  explicit pooling_kernel(const op::pooling& attributes) : attributes_(attributes) {}
  std::string name() const override { return std::string(to_string(attributes_.mode)) + " pooling"; }
  // norms are of planes alone
  stride_support input_strides(std::size_t) const override {
    return attributes_.mode == op::pooling_mode::lp ? stride_support::dense : stride_support::nchw_or_nhwc;
  }
  stride_support output_strides(std::size_t) const override {
    return attributes_.mode == op::pooling_mode::lp ? stride_support::dense : stride_support::strided_nchw_or_nhwc;
  }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    return window_result::scratch_bytes(in[0], out[0]);
  }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (y.elements() == 0) return;
    kernels::pooling_problem p = pooling_problem_of(attributes_, x, y);
    p.x = x.as<const float>();
    if (p.norm != 0) {  // of planes, though an image of one pixel looks like NHWC
      p.y = y.as<float>();
      return kiln_eigen_isa()->pool(*l.pool, p);
    }
    const window_result result(x, y, l.scratch);
    p.y = result.at();
    if (result.written().nchw) p.image_planes = x.lens[1], p.y_image = result.written().nchw->image;
    if (result.from().nhwc)
      kiln_eigen_isa()->pool_nhwc(*l.pool, p, {x.lens[0], x.lens[1], result.from().step, result.written().step});
    else
      kiln_eigen_isa()->pool(*l.pool, p);
    result.transpose(*l.pool);
  }

 private:
  op::pooling attributes_;
};

// Greatest elements and means of doubles: the op's, but that of equal zeros of both signs either may be the greatest.
class double_pooling_kernel final : public kernel {
 public:
  explicit double_pooling_kernel(const op::pooling& attributes) : attributes_(attributes) {}
  std::string name() const override { return std::string(to_string(attributes_.mode)) + " pooling of f64"; }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (y.elements() == 0) return;
    kiln_eigen_double_pooling()->pool(*l.pool, pooling_problem_of(attributes_, x, y), x.as<const double>(),
                                      y.as<double>());
  }

 private:
  op::pooling attributes_;
};

// Means of whole images in NHWC: vectors run over channels and memory is read in order, in a fraction of the time of a
// reduction of interleaved rows. What is computed of the means runs after it.
class image_mean_kernel final : public kernel {
 public:
  explicit image_mean_kernel(std::unique_ptr<tile_program> after) : after_(std::move(after)) {}
  std::string name() const override { return after_ ? "mean of images+epilogue" : "mean of images"; }
  stride_support input_strides(std::size_t) const override { return stride_support::nchw_or_nhwc; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const std::size_t sums = sums_bytes(in[0]);
    if (!after_) return sums;
    const tensor means = means_of(out[0], nullptr);
    return means_bytes(out[0]) + std::max(sums, rows_scratch_bytes(*after_, std::span(&means, 1), out, threads));
  }
  void run(const launch& l) const override {
    const tensor& x = l.in[0];
    const tensor y = after_ ? means_of(l.out[0], l.scratch.data()) : l.out[0];
    if (y.elements() == 0) return;
    const std::span<std::byte> room = l.scratch.subspan(after_ ? means_bytes(l.out[0]) : 0);
    kernels::pooling_problem p;
    p.x = x.as<const float>();
    p.y = y.as<float>();
    p.planes = x.lens[0] * x.lens[1];
    p.average = true;
    for (std::size_t d = 2; d < x.rank(); ++d) p.input[d + 3 - x.rank()] = p.window[d + 3 - x.rank()] = x.lens[d];
    const kernels::image_layout from = image_layout_of(x);
    if (from.nhwc)
      kiln_eigen_isa()->image_mean(*l.pool, x.lens[0], pixels_of(x), x.lens[1], p.x, from.step, p.y,
                                   reinterpret_cast<float*>(room.data()));
    else
      kiln_eigen_isa()->pool(*l.pool, p);
    if (!after_) return;
    launch rest = l;
    rest.in = std::span(&y, 1);
    rest.scratch = room;
    run_rows(*after_, rest);
  }

  // Images of symbolic extents may be empty.
  static bool serves(const kernel_request& r, const op::reduce_mean& mean) {
    constexpr std::int64_t least = 8;
    const shape& x = r.inputs[0];
    if (!r.nhwc[0] || x.rank() < 3 || x.rank() > 5 || mean.axes.size() != x.rank() - 2) return false;
    for (std::size_t d = 2; d < x.rank(); ++d)
      if (!x.lens[d].is_constant() || x.lens[d].value() < 1 || mean.axes[d - 2] != static_cast<std::int64_t>(d))
        return false;
    return x.lens[1].is_constant() && x.lens[1].value() >= least;
  }

 private:
  static tensor means_of(const tensor& out, std::byte* memory) {
    return {memory, dtype::f32, out.lens, row_major(out.lens)};
  }
  static std::int64_t pixels_of(const tensor& x) {
    std::int64_t pixels = 1;
    for (std::size_t d = 2; d < x.rank(); ++d) pixels *= x.lens[d];
    return pixels;
  }
  static std::size_t sums_bytes(const tensor& x) {
    if (x.elements() == 0) return 0;
    return static_cast<std::size_t>(kiln_eigen_isa()->image_mean_scratch_floats(x.lens[0], pixels_of(x), x.lens[1])) *
           sizeof(float);
  }
  static std::size_t means_bytes(const tensor& out) {
    return (static_cast<std::size_t>(out.elements()) * sizeof(float) + 63) / 64 * 64;
  }

  std::unique_ptr<tile_program> after_;
};

class lrn_kernel final : public kernel {
 public:
  lrn_kernel(const op::lrn& attributes, bool nhwc) : attributes_(attributes), nhwc_(nhwc) {}
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
    if (result.from().nhwc) p.x_step = result.from().step, p.y_step = result.written().step;
    kiln_eigen_isa()->lrn(*l.pool, p);
    result.transpose(*l.pool);
  }

 private:
  stride_support support() const { return nhwc_ ? stride_support::nchw_or_nhwc : stride_support::dense; }

  op::lrn attributes_;
  bool nhwc_;  // whether the result is to be NHWC
};

}  // namespace

kernels::pooling_problem pooling_problem_of(const op::pooling& attributes, const tensor& x, const tensor& y) {
  kernels::pooling_problem p;
  p.planes = x.lens[0] * x.lens[1];
  p.average = attributes.mode == op::pooling_mode::average;
  p.count_padding = attributes.count_include_pad;
  if (attributes.mode == op::pooling_mode::lp) p.norm = attributes.lp_order;
  const std::size_t axes = x.rank() - 2;
  for (std::size_t d = 0; d < axes; ++d) {
    const std::size_t to = 3 - axes + d;
    p.input[to] = x.lens[d + 2];
    p.output[to] = y.lens[d + 2];
    p.window[to] = attributes.lengths[d];
    if (!attributes.stride.empty()) p.stride[to] = attributes.stride[d];
    if (!attributes.dilation.empty()) p.dilation[to] = attributes.dilation[d];
    if (!attributes.pads.empty()) {
      p.pad_begin[to] = attributes.pads[d];
      p.pad_end[to] = attributes.pads[axes + d];
    }
  }
  return p;
}

// Means of images and what a fused body computes of them alone; null for others.
static std::unique_ptr<kernel> lower_image_mean(const kernel_request& r) {
  const auto* fused = r.instruction.op.get_if<op::fused>();
  if (!fused) {
    const auto* mean = r.instruction.op.get_if<op::reduce_mean>();
    return mean && image_mean_kernel::serves(r, *mean) ? std::make_unique<image_mean_kernel>(nullptr) : nullptr;
  }
  const module_graph& body = r.whole.module(fused->body);
  if (r.inputs.size() != 1 || body.outputs.size() != 1) return nullptr;
  const auto* mean =
      body.size() > 1 && body[1].kind == instruction_kind::op ? body[1].op.get_if<op::reduce_mean>() : nullptr;
  if (!mean || !image_mean_kernel::serves(r, *mean)) return nullptr;
  for (std::uint32_t i = 2; i < body.size(); ++i) {
    const bool is_op = body[i].kind == instruction_kind::op;
    if (is_op && body[i].op.kind() != op_kind::pointwise && body[i].op.kind() != op_kind::view) return nullptr;
    for (const value_id v : body[i].inputs)
      if (v.instruction == 0) return nullptr;
  }
  if (body.outputs[0].instruction == 1) return std::make_unique<image_mean_kernel>(nullptr);
  return std::make_unique<image_mean_kernel>(
      std::make_unique<tile_program>(lower::module_after(body, 1, [](std::uint32_t i) { return i > 1; })));
}

std::unique_ptr<kernel> lower_window(const kernel_request& r) {
  if (r.inputs.empty()) return nullptr;
  const auto* pool = r.instruction.op.get_if<op::pooling>();
  if (pool && (r.inputs[0].rank() < 3 || r.inputs[0].rank() > 5)) return nullptr;
  if (pool && r.inputs[0].type == dtype::f64 && pool->mode != op::pooling_mode::lp)
    return std::make_unique<double_pooling_kernel>(*pool);
  if (r.inputs[0].type != dtype::f32) return nullptr;
  if (pool) {
    return std::make_unique<pooling_kernel>(*pool);
  }
  if (auto mean = lower_image_mean(r)) return mean;
  if (const auto* lrn = r.instruction.op.get_if<op::lrn>()) return std::make_unique<lrn_kernel>(*lrn, r.result_nhwc);
  return nullptr;
}

}  // namespace kiln::eigen

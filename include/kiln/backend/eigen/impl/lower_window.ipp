#include <limits>

#include "kiln/backend/eigen/affine.hpp"
#include "kiln/backend/eigen/integers.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/backend/eigen/rows.hpp"
#include "kiln/core/simd/vec.hpp"
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

// The greater of doubles, lane by lane; NaN stays.
using two_doubles = vec<double, 2>;
two_doubles greater_of(two_doubles acc, two_doubles v) { return ((v > acc) | (v != v)) ? v : acc; }

// Greatest elements and means of doubles, as the op computes them; planes side by side on threads. For maxima the rows
// of a window are combined into a line first, without branches on what is greater.
class double_pooling_kernel final : public kernel {
 public:
  explicit double_pooling_kernel(const op::pooling& attributes) : attributes_(attributes) {}
  std::string name() const override { return std::string(to_string(attributes_.mode)) + " pooling of f64"; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor>, unsigned threads) const override {
    return threads * line_bytes(in[0]);
  }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (y.elements() == 0) return;
    const kernels::pooling_problem p = pooling_problem_of(attributes_, x, y);
    const std::int64_t in = p.input[0] * p.input[1] * p.input[2], out = p.output[0] * p.output[1] * p.output[2];
    const std::int64_t some = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, in));
    l.pool->parallel_for((p.planes + some - 1) / some, [&](std::int64_t task, unsigned worker) {
      auto* const line = reinterpret_cast<double*>(l.scratch.data() + worker * line_bytes(x));
      for (std::int64_t i = task * some; i < std::min(p.planes, (task + 1) * some); ++i)
        p.average ? means(p, x.as<const double>() + i * in, y.as<double>() + i * out)
                  : maxima(p, x.as<const double>() + i * in, y.as<double>() + i * out, line);
    });
  }

 private:
  using pool_window = kernels::pool_window;
  static constexpr std::int64_t lanes = 2;
  static std::size_t line_bytes(const tensor& x) {
    return (static_cast<std::size_t>(x.lens.back()) * sizeof(double) + 63) / 64 * 64;
  }

  static void means(const kernels::pooling_problem& p, const double* x, double* y) {
    for (std::int64_t d = 0; d < p.output[0]; ++d)
      for (std::int64_t h = 0; h < p.output[1]; ++h) {
        const pool_window deep(p, 0, d), high(p, 1, h);
        for (std::int64_t w = 0; w < p.output[2]; ++w) {
          const pool_window wide(p, 2, w);
          double sum = 0;
          for (std::int64_t a = deep.first; a < deep.last; a += deep.step)
            for (std::int64_t b = high.first; b < high.last; b += high.step)
              for (std::int64_t c = wide.first; c < wide.last; c += wide.step)
                sum += x[(a * p.input[1] + b) * p.input[2] + c];
          const std::int64_t counted = deep.counted() * high.counted() * wide.counted();
          *y++ = counted == 0 ? 0 : sum / static_cast<double>(counted);
        }
      }
  }

  // `line` has room for a row.
  static void maxima(const kernels::pooling_problem& p, const double* x, double* y, double* line) {
    constexpr double least = -std::numeric_limits<double>::infinity();
    const std::int64_t width = p.input[2];
    // columns whose windows lie inside wait for no bounds
    std::int64_t first = 0, last = 0;
    for (std::int64_t w = 0; w < p.output[2]; ++w) {
      const std::int64_t begin = w * p.stride[2] - p.pad_begin[2];
      if (begin < 0) first = w + 1;
      if (begin + (p.window[2] - 1) * p.dilation[2] < width) last = w + 1;
    }
    first = std::min(first, last);
    for (std::int64_t d = 0; d < p.output[0]; ++d)
      for (std::int64_t h = 0; h < p.output[1]; ++h, y += p.output[2]) {
        const pool_window deep(p, 0, d), high(p, 1, h);
        std::fill_n(line, width, least);
        for (std::int64_t a = deep.first; a < deep.last; a += deep.step)
          for (std::int64_t b = high.first; b < high.last; b += high.step) {
            const double* const row = x + (a * p.input[1] + b) * width;
            std::int64_t c = 0;
            for (; c + lanes <= width; c += lanes)
              store(line + c, greater_of(load<two_doubles>(line + c), load<two_doubles>(row + c)));
            for (; c < width; ++c) line[c] = greater(line[c], row[c]);
          }
        const auto bounded = [&](std::int64_t w) {
          const pool_window wide(p, 2, w);
          double most = least;
          for (std::int64_t c = wide.first; c < wide.last; c += wide.step) most = greater(most, line[c]);
          y[w] = most;
        };
        for (std::int64_t w = 0; w < first; ++w) bounded(w);
        for (std::int64_t w = first; w < last; ++w) {
          const double* const from = line + w * p.stride[2] - p.pad_begin[2];
          double most = least;
          for (std::int64_t k = 0; k < p.window[2]; ++k) most = greater(most, from[k * p.dilation[2]]);
          y[w] = most;
        }
        for (std::int64_t w = last; w < p.output[2]; ++w) bounded(w);
      }
  }
  static double greater(double acc, double v) { return greater_of(two_doubles{acc, acc}, two_doubles{v, v})[0]; }

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

#include "kiln/backend/eigen/isa.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

class pooling_kernel final : public kernel {
 public:
  explicit pooling_kernel(const op::pooling& attributes) : attributes_(attributes) {}
  std::string name() const override { return std::string(to_string(attributes_.mode)) + " pooling"; }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (y.elements() == 0) return;
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
    kiln_eigen_isa()->pool(*l.pool, p);
  }

 private:
  op::pooling attributes_;
};

class lrn_kernel final : public kernel {
 public:
  explicit lrn_kernel(const op::lrn& attributes) : attributes_(attributes) {}
  std::string name() const override { return "lrn"; }
  void run(const launch& l) const override {
    const tensor& x = l.in[0];
    if (x.elements() == 0) return;
    kernels::lrn_problem p;
    p.x = x.as<const float>();
    p.y = l.out[0].as<float>();
    p.batch = x.lens[0];
    p.channels = x.lens[1];
    p.pixels = x.elements() / (p.batch * p.channels);
    p.size = attributes_.size;
    p.alpha = static_cast<float>(attributes_.alpha);
    p.beta = static_cast<float>(attributes_.beta);
    p.bias = static_cast<float>(attributes_.bias);
    kiln_eigen_isa()->lrn(*l.pool, p);
  }

 private:
  op::lrn attributes_;
};

}  // namespace

std::unique_ptr<kernel> lower_window(const kernel_request& r) {
  if (r.inputs.empty() || r.inputs[0].type != dtype::f32) return nullptr;
  if (const auto* pool = r.instruction.op.get_if<op::pooling>()) {
    if (pool->mode == op::pooling_mode::lp || r.inputs[0].rank() < 3 || r.inputs[0].rank() > 5) return nullptr;
    return std::make_unique<pooling_kernel>(*pool);
  }
  if (const auto* lrn = r.instruction.op.get_if<op::lrn>()) return std::make_unique<lrn_kernel>(*lrn);
  return nullptr;
}

}  // namespace kiln::eigen

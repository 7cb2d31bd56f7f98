#include "kiln/backend/eigen/paged_attention.hpp"
#include "kiln/op/nn/paged_attention.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

class paged_attention_kernel final : public kernel {
 public:
  explicit paged_attention_kernel(const op::paged_attention& op) : op_(op) {}
  std::string name() const override { return "paged attention"; }
  stride_support input_strides(std::size_t i) const override {
    return i < 3 ? stride_support::rows : stride_support::dense;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::rows; }
  // How the caches are stored only a run tells: there is room for each way.
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    std::int64_t most = 0;
    kernels::paged_problem p = problem(in, out);
    for (const dtype stored : {dtype::f32, dtype::i8}) {
      p.stored = stored;
      most = std::max(most, kiln_eigen_paged_attention()->scratch_floats(p, threads));
    }
    return static_cast<std::size_t>(most) * sizeof(float);
  }
  void run(const launch& l) const override {
    if (l.out[0].elements() == 0) return;
    kernels::paged_problem p = problem(l.in, l.out);
    p.batch = reinterpret_cast<const op::paged_batch*>(static_cast<std::uintptr_t>(*l.in[3].as<const std::int64_t>()));
    p.stored = p.batch->stored;
    kiln_eigen_paged_attention()->run(*l.pool, p, reinterpret_cast<float*>(l.scratch.data()));
  }

 private:
  kernels::paged_problem problem(std::span<const tensor> in, std::span<const tensor> out) const {
    const tensor &q = in[0], &k = in[1], &v = in[2], &y = out[0];
    kernels::paged_problem p;
    p.heads = q.lens[1], p.tokens = q.lens[2], p.depth = q.lens[3], p.kv_heads = k.lens[1], p.value_depth = v.lens[3];
    const auto operand = [](const tensor& t) {
      return kernels::attention_problem::operand{t.data, t.strides[0], t.strides[1], t.strides[2]};
    };
    p.q = operand(q), p.k = operand(k), p.v = operand(v);
    p.out = y.as<float>(), p.out_head = y.strides[1], p.out_row = y.strides[2];
    if (in.size() > 4) p.sinks = in[4].as<const float>(), p.sink_step = in[4].lens[0] == 1 ? 0 : 1;
    p.scale = op_.scale, p.softcap = op_.softcap, p.window = op_.window, p.layer = op_.layer;
    return p;
  }
  op::paged_attention op_;
};

}  // namespace

std::unique_ptr<kernel> lower_paged_attention(const kernel_request& r) {
  const auto* op = r.instruction.op.get_if<op::paged_attention>();
  return op ? std::make_unique<paged_attention_kernel>(*op) : nullptr;
}

}  // namespace kiln::eigen

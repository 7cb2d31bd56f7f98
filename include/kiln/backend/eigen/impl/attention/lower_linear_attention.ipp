#include "kiln/backend/eigen/recurrent.hpp"
#include "kiln/op/sequence/linear_attention.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

class linear_attention_kernel final : public kernel {
 public:
  explicit linear_attention_kernel(const op::linear_attention& op) : op_(op) {}
  std::string name() const override { return "linear_attention"; }
  stride_support input_strides(std::size_t i) const override {
    return i == decay || i == beta ? stride_support::any : stride_support::dense;
  }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor>, unsigned threads) const override {
    const std::int64_t each = in[0].lens[2] / in[1].lens[2];
    return threads * sizeof(float) *
           static_cast<std::size_t>(kiln_eigen_recurrent()->linear_attention_scratch_floats(each, in[0].lens[3]));
  }
  void run(const launch& l) const override {
    const tensor &q = l.in[0], &fade = l.in[decay], &share = l.in[beta];
    kernels::linear_attention_problem p;
    p.batch = q.lens[0], p.steps = q.lens[1], p.heads = q.lens[2], p.depth = q.lens[3];
    p.own = l.in[1].lens[2], p.width = l.in[2].lens[3];
    p.scale = op_.scale, p.corrects = op_.corrects;
    p.q = q.as<const float>(), p.k = l.in[1].as<const float>(), p.v = l.in[2].as<const float>();
    p.first = l.in[3].as<const float>();
    p.decay = fade.as<const float>(), p.beta = share.as<const float>();
    p.decay_batch = fade.strides[0], p.decay_step = fade.strides[1], p.decay_head = fade.strides[2];
    p.decay_depth = fade.strides[3];
    p.beta_batch = share.strides[0], p.beta_step = share.strides[1], p.beta_head = share.strides[2];
    p.y = l.out[0].as<float>(), p.last = l.out[1].as<float>();
    kiln_eigen_recurrent()->linear_attention(*l.pool, p, reinterpret_cast<float*>(l.scratch.data()));
  }

 private:
  static constexpr std::size_t decay = 4, beta = 5;  // operands
  const op::linear_attention op_;
};

}  // namespace

std::unique_ptr<kernel> lower_linear_attention(const kernel_request& r) {
  const auto* attention = r.instruction.op.get_if<op::linear_attention>();
  if (!attention || r.inputs[0].type != dtype::f32) return nullptr;
  return std::make_unique<linear_attention_kernel>(*attention);
}

}  // namespace kiln::eigen

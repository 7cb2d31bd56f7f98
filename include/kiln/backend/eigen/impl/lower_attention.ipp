#include "kiln/backend/eigen/isa.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/runtime/tuner.hpp"

namespace kiln::eigen {
namespace {

class attention_kernel final : public kernel {
 public:
  attention_kernel(const op::attention& attributes, std::int64_t keys_at_once)
      : attributes_(attributes), keys_at_once_(keys_at_once) {}
  std::string name() const override { return "attention"; }
  stride_support input_strides(std::size_t i) const override {
    return i < 3 ? stride_support::rows : stride_support::any;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::rows; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    return static_cast<std::size_t>(kiln_eigen_isa()->attention_scratch_floats(problem(in, out), threads)) *
           sizeof(float);
  }
  void run(const launch& l) const override {
    if (l.out[0].elements() == 0) return;
    kiln_eigen_isa()->attention(*l.pool, problem(l.in, l.out), reinterpret_cast<float*>(l.scratch.data()));
  }

 private:
  kernels::attention_problem problem(std::span<const tensor> in, std::span<const tensor> out) const {
    const tensor &q = in[0], &k = in[1], &v = in[2], &y = out[0];
    kernels::attention_problem p;
    p.keys_at_once = keys_at_once_;
    p.batch = q.lens[0], p.heads = q.lens[1], p.queries = q.lens[2], p.depth = q.lens[3];
    p.kv_heads = k.lens[1], p.keys = k.lens[2], p.value_depth = v.lens[3];
    const auto operand = [](const tensor& t) {
      return kernels::attention_problem::operand{t.as<const float>(), t.strides[0], t.strides[1], t.strides[2]};
    };
    p.q = operand(q), p.k = operand(k), p.v = operand(v);
    p.out = y.as<float>();
    p.out_batch = y.strides[0], p.out_head = y.strides[1], p.out_row = y.strides[2];
    p.scale = attributes_.scale;
    p.causal = attributes_.causal;
    if (in.size() > 3) {
      const tensor& m = in[3];
      if (m.type == dtype::boolean)
        p.keep_mask = m.as<const bool>();
      else
        p.add_mask = m.as<const float>();
      const auto step = [&](std::size_t d) { return m.lens[d] == 1 ? 0 : m.strides[d]; };
      p.mask_batch = step(0), p.mask_head = step(1), p.mask_row = step(2), p.mask_col = step(3);
    }
    return p;
  }
  op::attention attributes_;
  std::int64_t keys_at_once_;
};

}  // namespace

std::unique_ptr<kernel> lower_attention(const kernel_request& r) {
  const auto* op = r.instruction.op.get_if<op::attention>();
  if (!op) return nullptr;
  for (std::size_t i = 0; i < 3; ++i)
    if (r.inputs[i].type != dtype::f32 || r.inputs[i].rank() != 4) return nullptr;
  if (r.inputs.size() > 3 &&
      (r.inputs[3].rank() != 4 || (r.inputs[3].type != dtype::f32 && r.inputs[3].type != dtype::boolean)))
    return nullptr;
  std::vector<std::int64_t> keys = {kernels::attention_problem().keys_at_once};
  if (r.tuning && r.inputs[1].is_constant())
    for (std::int64_t n : {128, 256, 1024})
      if (n < 2 * r.inputs[1].lens[2].value() && r.inputs[1].lens[2].value() > 64) keys.push_back(n);
  kernel_candidates all;
  for (std::int64_t n : keys) all.names.push_back(std::to_string(n) + " keys at once");
  all.make = [&](std::size_t k) { return std::make_unique<attention_kernel>(*op, keys[k]); };
  return make_best(r, all);
}

}  // namespace kiln::eigen

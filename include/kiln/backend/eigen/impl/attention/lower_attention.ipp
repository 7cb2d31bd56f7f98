#include <algorithm>

#include "kiln/backend/eigen/isa.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/pass/fuse_stored_keys.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/runtime/tuner.hpp"

namespace kiln::eigen {
namespace {

// Where an attention finds its operands among the inputs of its instruction.
struct attention_form {
  static constexpr std::size_t none = ~std::size_t{0};

  op::attention op;
  std::size_t operands[4] = {0, 1, 2, none};  // queries, keys, values, mask
  std::size_t scales[2] = {none, none};       // of keys and values
  float factors[2] = {1, 1};                  // the same as constants
};

// The form of a bare attention, or of a body that `fuse_stored_keys` made.
std::optional<attention_form> find_form(const kernel_request& r) {
  attention_form out;
  if (const auto* op = r.instruction.op.get_if<op::attention>()) {
    out.op = *op;
    if (r.inputs.size() > 3) out.operands[3] = 3;
    return out;
  }
  const auto* fused = r.instruction.op.get_if<op::fused>();
  if (!fused || fused->kind != fusion::contraction) return std::nullopt;
  const module_graph& body = r.whole.module(fused->body);
  const auto found = find_stored_attention(body);
  if (!found) return std::nullopt;
  out.op = *found->attention->op.get_if<op::attention>();
  const auto is_parameter = [&](value_id v) { return body[v.instruction].kind == instruction_kind::parameter; };
  const auto& read = found->attention->inputs;
  const value_id operands[] = {read[0], found->keys.data, found->values.data, read.size() > 3 ? read[3] : read[0]};
  for (std::size_t k = 0; k < 4; ++k) {
    if (!is_parameter(operands[k])) return std::nullopt;
    out.operands[k] = parameter_index(body, operands[k].instruction);
  }
  if (read.size() < 4) out.operands[3] = attention_form::none;
  const value_id scales[] = {found->keys.scale, found->values.scale};
  for (std::size_t k = 0; k < 2; ++k) {
    if (!scales[k]) continue;
    if (is_parameter(scales[k]))
      out.scales[k] = parameter_index(body, scales[k].instruction);
    else if (const auto constant = repeated_constant(body, scales[k]))
      out.factors[k] = constant->at<float>(0);
    else
      return std::nullopt;
  }
  return out;
}

class attention_kernel final : public kernel {
 public:
  /// `stored`: the type of keys and values.
  attention_kernel(const attention_form& form, dtype stored, std::int64_t keys_at_once)
      : form_(form), stored_(stored), keys_at_once_(keys_at_once) {}
  std::string name() const override {
    return stored_ == dtype::f32 ? "attention" : "attention over " + std::string(to_string(stored_));
  }
  stride_support input_strides(std::size_t i) const override {
    const auto* const end = form_.operands + 3;
    return std::find(form_.operands, end, i) != end ? stride_support::rows : stride_support::any;
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
    const tensor &q = in[form_.operands[0]], &k = in[form_.operands[1]], &v = in[form_.operands[2]], &y = out[0];
    kernels::attention_problem p;
    p.keys_at_once = keys_at_once_;
    p.batch = q.lens[0], p.heads = q.lens[1], p.queries = q.lens[2], p.depth = q.lens[3];
    p.kv_heads = k.lens[1], p.keys = k.lens[2], p.value_depth = v.lens[3];
    const auto operand = [](const tensor& t) {
      return kernels::attention_problem::operand{t.data, t.strides[0], t.strides[1], t.strides[2]};
    };
    p.q = operand(q), p.k = operand(k), p.v = operand(v);
    p.stored = stored_;
    p.k_scale = scales(in, 0), p.v_scale = scales(in, 1);
    p.out = y.as<float>();
    p.out_batch = y.strides[0], p.out_head = y.strides[1], p.out_row = y.strides[2];
    p.scale = form_.op.scale;
    p.causal = form_.op.causal;
    if (form_.operands[3] != attention_form::none) {
      const tensor& m = in[form_.operands[3]];
      if (m.type == dtype::boolean)
        p.keep_mask = m.as<const bool>();
      else
        p.add_mask = m.as<const float>();
      const auto step = [&](std::size_t d) { return m.lens[d] == 1 ? 0 : m.strides[d]; };
      p.mask_batch = step(0), p.mask_head = step(1), p.mask_row = step(2), p.mask_col = step(3);
    }
    return p;
  }
  kernels::attention_problem::scales scales(std::span<const tensor> in, std::size_t k) const {
    if (form_.scales[k] == attention_form::none) return {form_.factors[k] == 1 ? nullptr : &form_.factors[k], 0, 0};
    const tensor& t = in[form_.scales[k]];
    // before there is memory, any address says that there are scales, which take scratch memory
    const float* const at = t.data ? t.as<const float>() : &form_.factors[k];
    return {at, t.lens[1] == 1 ? 0 : t.strides[1], t.lens[3] == 1 ? 0 : t.strides[3]};
  }
  attention_form form_;
  dtype stored_;
  std::int64_t keys_at_once_;
};

}  // namespace

std::unique_ptr<kernel> lower_attention(const kernel_request& r) {
  const auto form = find_form(r);
  if (!form) return nullptr;
  const auto input = [&](std::size_t k) -> const shape& { return r.inputs[form->operands[k]]; };
  for (std::size_t k = 0; k < 3; ++k)
    if (input(k).rank() != 4) return nullptr;
  if (input(0).type != dtype::f32 || input(1).type != input(2).type ||
      (input(1).type != dtype::f32 && !stores_keys(input(1).type)))
    return nullptr;
  if (form->operands[3] != attention_form::none &&
      (input(3).rank() != 4 || (input(3).type != dtype::f32 && input(3).type != dtype::boolean)))
    return nullptr;
  std::vector<std::int64_t> keys = {kernels::attention_problem().keys_at_once};
  if (r.tuning && input(1).is_constant())
    for (std::int64_t n : {128, 256, 1024})
      if (n < 2 * input(1).lens[2].value() && input(1).lens[2].value() > 64) keys.push_back(n);
  kernel_candidates all;
  for (std::int64_t n : keys) all.names.push_back(std::to_string(n) + " keys at once");
  all.make = [&](std::size_t k) { return std::make_unique<attention_kernel>(*form, input(1).type, keys[k]); };
  return make_best(r, all);
}

}  // namespace kiln::eigen

#include "kiln/backend/eigen/impl/attention/byte_attention_form.hpp"
#include "kiln/backend/eigen/impl/int8/byte_operands.hpp"
#include "kiln/backend/eigen/impl/int8/byte_products.hpp"
#include "kiln/backend/eigen/impl/pointwise/body_of_steps.hpp"
#include "kiln/pass/constants.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

using namespace integer_epilogues;

// The steps of an attention among the instructions of a module, and what each of them reads.
struct attention_steps {
  value_id scores, weights, result;
};

// Follows the left operand of a product back: a softmax that nothing else reads, and a product likewise.
std::optional<attention_steps> find_steps(const program& whole, const module_graph& m, std::uint32_t last) {
  const auto fused_of = [&](value_id v, fusion kind) {
    const auto& i = m.producer(v);
    const auto* fused = i.kind == instruction_kind::op ? i.op.get_if<op::fused>() : nullptr;
    return fused && fused->kind == kind && i.results.size() == 1;
  };
  attention_steps out;
  out.result = {last, 0};
  if (!fused_of(out.result, fusion::contraction)) return std::nullopt;
  const auto product = lower::split_contraction(whole, m[last]);
  if (!product || !product->op.is<op::integer_dot>()) return std::nullopt;
  out.weights = m[last].inputs[product->operands[0]];
  if (!fused_of(out.weights, fusion::reduce) || m.producer(out.weights).inputs.size() != 1) return std::nullopt;
  out.scores = m.producer(out.weights).inputs[0];
  if (!fused_of(out.scores, fusion::contraction)) return std::nullopt;
  return out;
}

// What is asked for one of the steps, whose inputs are constants as `constant_of(value)` tells.
template <class ConstantOf>
kernel_request request_of(const program& whole, const module_graph& m, value_id step, ConstantOf&& constant_of) {
  kernel_request out{whole, m, m.producer(step), {}, {}, {}};
  for (const value_id v : out.instruction.inputs) {
    const auto [constant, at] = constant_of(v);
    out.constants.push_back(constant);
    out.constant_layouts.push_back(at);
    out.inputs.push_back(m.shape_of(v));
  }
  return out;
}
template <class ConstantOf>
std::optional<byte_attention_form> find_form(const program& whole, const module_graph& m, const attention_steps& steps,
                                             ConstantOf&& constant_of) {
  return find_byte_attention(request_of(whole, m, steps.scores, constant_of),
                             request_of(whole, m, steps.weights, constant_of),
                             request_of(whole, m, steps.result, constant_of));
}

class byte_attention_kernel final : public kernel {
 public:
  /// Operands: inputs of the instruction that are queries, keys, values and, or `none`, what is added to the scores.
  byte_attention_kernel(byte_attention_form form, const std::size_t (&operands)[4]) : form_(std::move(form)) {
    std::copy_n(operands, 4, operands_);
  }

  std::string name() const override {
    return kiln_eigen_integers()->reads_bytes ? "attention in integers (bytes)" : "attention in integers (words)";
  }
  stride_support input_strides(std::size_t i) const override {
    return i == operands_[3] ? stride_support::rows : stride_support::any;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::rows; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    return places(*this, in, out[0], threads).bytes;
  }
  double estimated_seconds(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const tensor &queries = in[operands_[0]], &keys = in[operands_[1]], &values = in[operands_[2]], &y = out[0];
    const std::size_t rank = y.rank();
    constexpr double of_weight = 0.4e-9;  // seconds of the softmax and its rounding, in vectors of 64 bytes
    const double rows = static_cast<double>(y.elements()) /
                        static_cast<double>(std::max<std::int64_t>(y.lens[rank - 1], 1)),
                 weights = rows * static_cast<double>(keys.lens[rank - 1]);
    const double depth = static_cast<double>(queries.lens[rank - 1] + y.lens[rank - 1]);
    const double bytes = static_cast<double>(queries.elements() + keys.elements() + values.elements()) +
                         static_cast<double>(y.elements()) * static_cast<double>(size_of(y.type));
    return byte_product_seconds(y.lens[rank - 2], 2 * weights * depth, bytes, threads) +
           weights * of_weight * 64 / kiln_eigen_isa()->vector_bytes / threads;
  }
  void run(const launch& l) const override {
    if (l.out[0].elements() == 0) return;
    places at(*this, l.in, l.out[0], l.pool->size());
    std::byte* const scratch = l.scratch.data();
    const auto addresses = [&](std::size_t to, const tensor& t) {
      auto* const list = reinterpret_cast<std::byte**>(scratch + to);
      find_matrices(t, l.out[0], list);
      return list;
    };
    kernels::byte_attention& p = at.problem;
    p.scores.a = addresses(at.lists[0], l.in[operands_[0]]);
    p.scores.b = addresses(at.lists[1], l.in[operands_[1]]);
    p.values.b = addresses(at.lists[2], l.in[operands_[2]]);
    p.results = addresses(at.lists[3], l.out[0]);
    if (operands_[3] != none) p.masks = addresses(at.lists[4], l.in[operands_[3]]);
    kiln_eigen_integers()->attend(*l.pool, p, reinterpret_cast<std::int32_t*>(scratch));
  }

 private:
  // What a run needs, by its sizes: the workers' memory comes first in the scratch memory.
  struct places {
    kernels::byte_attention problem;
    std::size_t lists[5] = {}, bytes = 0;

    places(const byte_attention_kernel& k, std::span<const tensor> in, const tensor& out, unsigned threads) {
      const byte_attention_form& form = k.form_;
      const tensor &queries = in[k.operands_[0]], &keys = in[k.operands_[1]], &values = in[k.operands_[2]];
      const std::size_t rank = out.rank();
      tensor scores = out;
      scores.type = form.weights_type;
      scores.lens[rank - 1] = keys.lens[rank - 1];
      scores.strides = row_major(scores.lens);
      problem.scores = problem_of(form.scores, queries, keys, scores);
      problem.score = form.score.bound(nullptr);
      problem.values = problem_of(form.values, scores, values, out);
      problem.factor = form.factor;
      problem.weights = form.weights;
      problem.result = form.result.bound(nullptr);
      problem.result.result_row = out.strides[rank - 2];
      if (k.operands_[3] != none) problem.score.addend_row = in[k.operands_[3]].strides[rank - 2];
      bytes = static_cast<std::size_t>(kiln_eigen_integers()->attention_scratch(problem, threads)) * 4;
      for (std::size_t& list : lists) {
        list = bytes = (bytes + 63) / 64 * 64;
        bytes += static_cast<std::size_t>(problem.scores.batch) * sizeof(std::byte*);
      }
    }
  };

  byte_attention_form form_;
  std::size_t operands_[4];
};

}  // namespace

pass_note fuse_byte_attention(program& p) {
  pass_note note("fuse_byte_attention");
  shared_bodies<program> bodies(p);
  for_each_unfused(p, [&](module_graph& m) {
    const user_lists users(m);
    const rewriter<module_graph> values(m);
    const auto constant_of = [&](value_id v) {
      const constant_view c = viewed_constant(values, v);
      return std::pair(c.from, c.at);
    };
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      if (m[i].kind != instruction_kind::op) continue;
      const auto steps = find_steps(p, m, i);
      if (!steps || users[steps->weights.instruction].size() != 1 || users[steps->scores.instruction].size() != 1)
        continue;
      if (!find_form(p, m, *steps, constant_of)) {
        note.remark(text("attention over bytes stays in steps: scores, weights or results are made in another form"));
        continue;
      }
      small_vector<value_id> inputs;
      module_graph body = body_of_steps(
          m, "attention", {steps->scores.instruction, steps->weights.instruction, steps->result.instruction}, inputs,
          [&](std::uint32_t k) { return m[k].op; });
      m[i].op = operation(op::fused{fusion::contraction, bodies.add(std::move(body))});
      m[i].inputs = std::move(inputs);
      note.count("attention");
    }
    m.compact();
  });
  return note;
}

std::unique_ptr<kernel> lower_byte_attention(const kernel_request& r) {
  const auto* fused = r.instruction.op.get_if<op::fused>();
  if (!fused || fused->kind != fusion::contraction || r.instruction.results.size() != 1) return nullptr;
  const module_graph& body = r.whole.module(fused->body);
  const auto steps = find_steps(r.whole, body, body.outputs[0].instruction);
  if (!steps) return nullptr;
  const auto input = [&](value_id v) {
    return body.producer(v).kind == instruction_kind::parameter ? parameter_index(body, v.instruction) : none;
  };
  auto form = find_form(r.whole, body, *steps, [&](value_id v) {
    const std::size_t k = input(v);
    return k == none ? std::pair<const literal*, layout>() : std::pair(r.constants[k], r.constant_layouts[k]);
  });
  if (!form) return nullptr;
  const auto &scores = body.producer(steps->scores), &result = body.producer(steps->result);
  const std::size_t operands[] = {input(scores.inputs[form->queries]), input(scores.inputs[form->keys]),
                                  input(result.inputs[form->stored_values]),
                                  form->score.addend == none ? none : input(scores.inputs[form->score.addend])};
  for (std::size_t k = 0; k < 3; ++k)
    if (operands[k] == none) return nullptr;
  return std::make_unique<byte_attention_kernel>(std::move(*form), operands);
}

}  // namespace kiln::eigen

#pragma once
#include "kiln/backend/eigen/impl/int8/requantization_form.hpp"
#include "kiln/kernel/int8/attention_problem.hpp"
#include "kiln/op/quant/integer_dot.hpp"

/// The form of attention over bytes that one kernel computes, for one unit.
namespace kiln::eigen::integer_epilogues {

struct byte_attention_form {
  op::integer_dot scores, values;
  std::size_t queries = 0, keys = 0, stored_values = 0;  // inputs of the first and of the last product
  requantization_form score, result;
  float factor = 1;  // of the softmax before it is rounded
  kernels::byte_quantization weights;
  dtype weights_type = dtype::u8;
};

// The quotient that ends the softmax of a body's parameter over its last dim; what comes before it is marked.
inline std::optional<std::uint32_t> find_softmax(const module_graph& m, std::vector<bool>& before) {
  const auto through_views = [&](value_id v) {
    while (is_kind(m, v.instruction, op_kind::view)) before[v.instruction] = true, v = m.producer(v).inputs[0];
    return v;
  };
  const auto is = [&]<class Op>(std::type_identity<Op>, value_id v) {
    const auto& i = m.producer(v);
    return i.kind == instruction_kind::op && i.op.is<Op>();
  };
  // a reduction over the last dim, seen through what repeats it
  const auto reduces = [&]<class Op>(std::type_identity<Op> kind, value_id v, value_id of) {
    v = through_views(v);
    if (!is(kind, v) || !(m.producer(v).inputs[0] == of)) return false;
    before[v.instruction] = true;
    const std::size_t rank = m.shape_of(of).rank();
    const ints& axes = m.producer(v).op.get_if<Op>()->axes;
    return axes.size() == 1 && normal_axis(axes[0], rank) == static_cast<std::int64_t>(rank) - 1;
  };
  std::optional<std::uint32_t> quotient;
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    if (!is(std::type_identity<op::div>(), {i, 0}) || !is(std::type_identity<op::exp>(), m[i].inputs[0])) continue;
    if (quotient) return std::nullopt;
    quotient = i;
  }
  if (!quotient) return std::nullopt;
  const value_id power = m[*quotient].inputs[0], difference = m.producer(power).inputs[0];
  if (!reduces(std::type_identity<op::reduce_sum>(), m[*quotient].inputs[1], power) ||
      !is(std::type_identity<op::sub>(), difference))
    return std::nullopt;
  const value_id x = m.producer(difference).inputs[0];
  if (m.producer(x).kind != instruction_kind::parameter ||
      !reduces(std::type_identity<op::reduce_max>(), m.producer(difference).inputs[1], x))
    return std::nullopt;
  for (const value_id v : {power, difference, x}) before[v.instruction] = true;
  return quotient;
}

// The form of three steps: a product of bytes that ends in floats, a softmax that ends in bytes, and a product that
// ends in bytes or floats, as requantization makes them.
inline std::optional<byte_attention_form> find_byte_attention(const kernel_request& scores,
                                                              const kernel_request& weights,
                                                              const kernel_request& result) {
  const shape &scored = scores.instruction.results[0], &weighed = weights.instruction.results[0],
              &made = result.instruction.results[0];
  const std::size_t rank = made.rank();
  if (!scored.is_constant() || !made.is_constant() || rank < 2 || scored.rank() != rank ||
      !(scored.lens == weighed.lens) || scored.elements() == dimension(0) || scored.type != dtype::f32)
    return std::nullopt;
  for (std::size_t d = 0; d + 1 < rank; ++d)
    if (!(scored.lens[d] == made.lens[d])) return std::nullopt;
  byte_attention_form out;

  const auto requantized = [](const kernel_request& r, op::integer_dot& product,
                              std::size_t(&operands)[2]) -> std::optional<requantization_form> {
    const auto body = lower::split_contraction(r.whole, r.instruction);
    if (!body || !body->has_epilogue() || !body->op.is<op::integer_dot>()) return std::nullopt;
    product = *body->op.get_if<op::integer_dot>();
    std::copy_n(body->operands, 2, operands);
    const shape& in = r.inputs[operands[0]];
    const shape& of = r.instruction.results[0];
    if (in.rank() != of.rank() || r.inputs[operands[1]].rank() != of.rank() || !in.is_constant()) return std::nullopt;
    const auto form = find_form(*body);
    if (!form || !form->addends.empty()) return std::nullopt;
    auto found = requantization_finder(*body, r, of.rank() - 1, of.lens.back().value()).find(form->converted);
    if (found && (found->scale_input != none || (found->addend != none && !(r.inputs[found->addend].lens == of.lens))))
      return std::nullopt;
    return found;
  };
  std::size_t of_scores[2], of_result[2];
  auto score = requantized(scores, out.scores, of_scores), last = requantized(result, out.values, of_result);
  if (!score || !last || last->addend != none || score->how.result_kind != kernels::requantization::kind::floats)
    return std::nullopt;
  out.weights_type = weighed.type;
  out.queries = of_scores[0], out.keys = of_scores[1], out.stored_values = of_result[1];
  out.score = std::move(*score), out.result = std::move(*last);

  const auto* fused = weights.instruction.op.get_if<op::fused>();
  if (!fused || weights.instruction.inputs.size() != 1) return std::nullopt;
  const module_graph& m = weights.whole.module(fused->body);
  std::vector<bool> before(m.size(), false);
  const auto quotient = find_softmax(m, before);
  if (!quotient || !(m.shape_of({*quotient, 0}).lens == scored.lens)) return std::nullopt;
  lower::contraction_body<module_graph> after;
  after.epilogue = lower::module_after(m, *quotient, [&](std::uint32_t i) { return !before[i]; });
  const auto rounded = requantization_finder(after, weights, rank - 1, 1).find(0);
  if (!rounded || !rounded->bias.empty() || rounded->how.rounds || rounded->how.rectifies || rounded->addend != none ||
      rounded->how.result_kind == kernels::requantization::kind::floats || !(rounded->scale[0] > 0))
    return std::nullopt;
  out.factor = rounded->scale[0];
  out.weights = {rounded->how.last, rounded->how.zero};
  return out;
}

}  // namespace kiln::eigen::integer_epilogues

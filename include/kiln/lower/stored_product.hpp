#pragma once
#include <algorithm>

#include "kiln/lower/contraction.hpp"
#include "kiln/pass/stored_weights.hpp"

namespace kiln::lower {

/// A fused body of a matrix product whose weights are stored in blocks (`fuse_stored_weights`).
template <class Module> struct stored_product {
  stored_weights weights;
  contraction_body<Module> body;  ///< operand 1: the data
  std::size_t operands[3] = {};   ///< inputs of the instruction: data, scales, zero points

  std::span<const std::size_t> inputs() const { return std::span(operands).first(weights.operands.size()); }
};

/// What an instruction is if it is one such product over floats of type `t`; else empty.
template <class Program, class Instruction>
std::optional<stored_product<typename Program::module_type>> find_stored_product(const Program& p,
                                                                                 const Instruction& instruction,
                                                                                 dtype t) {
  const auto* fused = instruction.op.template get_if<op::fused>();
  if (!fused || fused->kind != fusion::contraction || instruction.results.size() != 1) return std::nullopt;
  const auto& m = p.module(fused->body);
  const std::uint32_t at = only_contraction(m);
  if (at == m.size() || !m[at].op.template is<op::dot>()) return std::nullopt;
  const value_id left = m[at].inputs[0];
  auto weights = find_stored_weights(m, m[at].inputs[1], t);
  if (!weights || !is_parameter(m[left.instruction]) || m.shape_of(left).type != t) return std::nullopt;
  const auto of_weights = [&](std::uint32_t i) {
    return std::find(weights->instructions.begin(), weights->instructions.end(), i) != weights->instructions.end();
  };
  stored_product<typename Program::module_type> out;
  out.body.op = m[at].op;
  small_vector<bool> read(m.size(), false);
  for (std::uint32_t i = 0; i < m.size(); ++i)
    if (i != at && !of_weights(i))
      for (const value_id v : m[i].inputs) read[v.instruction] = true;
  for (const std::uint32_t i : weights->instructions)
    if (read[i]) return std::nullopt;
  std::size_t parameters = 0;
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    if (!is_parameter(m[i])) continue;
    if (i == left.instruction) out.body.operands[0] = parameters;
    for (std::size_t k = 0; k < weights->operands.size(); ++k)
      if (i == weights->operands[k].instruction) out.operands[k] = parameters;
    if (read[i]) out.body.epilogue_inputs.push_back(static_cast<std::uint32_t>(parameters));
    ++parameters;
  }
  out.body.operands[1] = out.operands[0];
  if (m.outputs[0].instruction != at)
    out.body.epilogue =
        module_after(m, at, [&](std::uint32_t i) { return !of_weights(i) && (!is_parameter(m[i]) || read[i]); });
  out.weights = std::move(*weights);
  return out;
}

}  // namespace kiln::lower

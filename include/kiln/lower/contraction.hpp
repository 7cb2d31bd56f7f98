#pragma once
#include <cstddef>
#include <optional>
#include <type_traits>

#include "kiln/graph/module.hpp"

/// What every target needs to know of an optimized program, as templates over it.
namespace kiln::lower {

/// How the values of a body stand to its only contraction. Parameter k of the body is input k of its instruction.
struct contraction_split {
  static constexpr std::uint32_t computed = 0xffff'ffff;
  static constexpr std::size_t most_inputs = 64;

  std::uint32_t contraction = 0;  ///< which of the body's instructions
  /// The parameters that it reads; the first one is `computed` where a prologue makes it.
  std::uint32_t operands[2] = {computed, computed};
  /// The parameters that the epilogue reads, in order. An operand of the contraction may be among them.
  inline_vector<std::uint32_t, most_inputs> epilogue_inputs{};
};

template <class Operation> constexpr bool is_parameter(const basic_instruction<Operation>& i) {
  return i.kind == instruction_kind::parameter;
}
template <class Operation> constexpr bool is_contraction(const basic_instruction<Operation>& i) {
  return i.kind == instruction_kind::op && i.op.kind() == op_kind::contraction;
}
constexpr std::uint32_t producer_of(value_id v) { return v.instruction; }
constexpr std::uint32_t producer_of(std::uint32_t v) { return v; }

/// The only contraction of a body; its size where there is none or a second one.
template <class Body> constexpr std::uint32_t only_contraction(const Body& body) {
  const auto size = static_cast<std::uint32_t>(body.size());
  std::uint32_t found = size;
  for (std::uint32_t i = 0; i < size; ++i)
    if (is_contraction(body[i])) {
      if (found != size) return size;
      found = i;
    }
  return found;
}

/// Where the instructions of a body stand around its contraction.
struct body_marks {
  small_vector<bool> prologue;  ///< computes the contraction's first operand
  small_vector<bool> read;      ///< is read by the epilogue
};

template <class Body> constexpr body_marks mark_body(const Body& body, std::uint32_t contraction) {
  body_marks out;
  out.prologue.resize(body.size(), false);
  out.read.resize(body.size(), false);
  const auto take = [&](std::uint32_t i) { out.prologue[i] = !is_parameter(body[i]); };
  const std::uint32_t end = producer_of(body[contraction].inputs[0]);
  take(end);
  for (std::uint32_t i = end + 1; i-- > 0;)
    if (out.prologue[i])
      for (const auto v : body[i].inputs) take(producer_of(v));
  for (std::uint32_t i = 0; i < body.size(); ++i)
    if (i != contraction && !out.prologue[i])
      for (const auto v : body[i].inputs) out.read[producer_of(v)] = true;
  return out;
}

/// The split of a body: a module, or the nodes of a static program's step, for whose elements `is_parameter` and
/// `is_contraction` are overloaded. Empty where there is not exactly one contraction, where its second operand is
/// computed, or where the epilogue reads an op of the prologue or too many parameters.
template <class Body> constexpr std::optional<contraction_split> split_body(const Body& body) {
  contraction_split out;
  out.contraction = only_contraction(body);
  if (out.contraction == body.size()) return std::nullopt;
  const body_marks marks = mark_body(body, out.contraction);
  const auto& operands = body[out.contraction].inputs;
  for (std::uint32_t i = 0, parameters = 0; i < body.size(); ++i) {
    if (!is_parameter(body[i])) {
      if (marks.prologue[i] && marks.read[i] && !body[i].inputs.empty()) return std::nullopt;
      continue;
    }
    for (std::size_t k = 0; k < 2; ++k)
      if (producer_of(operands[k]) == i) out.operands[k] = parameters;
    if (marks.read[i]) {
      if (out.epilogue_inputs.size() == contraction_split::most_inputs) return std::nullopt;
      out.epilogue_inputs.push_back(parameters);
    }
    ++parameters;
  }
  if (out.operands[1] == contraction_split::computed) return std::nullopt;
  return out;
}

/// An instruction and the module that it belongs to; null where there is none.
template <class Module> struct located_instruction {
  const Module* module = nullptr;
  const typename Module::instruction* instruction = nullptr;

  constexpr explicit operator bool() const { return instruction != nullptr; }
  template <class Op> constexpr const Op* get_if() const {
    return instruction ? instruction->op.template get_if<Op>() : nullptr;
  }
  constexpr const shape& operand(std::size_t k) const { return module->shape_of(instruction->inputs[k]); }
};

/// The contraction that an instruction of a module is, or that of its fused body.
template <class Program, class Module>
constexpr located_instruction<Module> contraction_of(const Program& p, const Module& m,
                                                     const typename Module::instruction& i) {
  if (is_contraction(i)) return {&m, &i};
  const auto* fused = i.kind == instruction_kind::op ? i.op.template get_if<op::fused>() : nullptr;
  if (!fused || fused->kind != fusion::contraction) return {};
  const Module& body = p.module(fused->body);
  const std::uint32_t at = only_contraction(body);
  if (at == body.size()) return {};
  return {&body, &body[at]};
}
template <class Program>
constexpr auto contraction_of(const Program& p, const typename Program::module_type::instruction& i) {
  return contraction_of(p, p.main(), i);
}

/// A contraction, bare or fused, with its epilogue as a module.
template <class Module> struct contraction_body {
  typename Module::operation_type op;
  std::size_t operands[2] = {0, 1};  ///< inputs of the instruction; in place of the first one, what its prologue reads
  decltype(contraction_split::epilogue_inputs) epilogue_inputs{};  ///< parameters 1, 2, … of the epilogue
  Module epilogue;  ///< parameter 0 is the contraction's result; empty where nothing follows

  constexpr bool has_epilogue() const { return epilogue.size() != 0; }
};

/// The instructions of a module that `kept` tells, as a module whose parameter 0 stands for the value of `from`.
template <class Module, class Kept> constexpr Module module_after(const Module& m, std::uint32_t from, Kept&& kept) {
  Module out;
  small_vector<value_id> of;
  of.resize(m.size());
  of[from] = out.add_parameter("product", m[from].results[0]);
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    if (i == from || !kept(i)) continue;
    const auto& ins = m[i];
    if (ins.kind == instruction_kind::parameter) {
      of[i] = out.add_parameter(ins.name.view(), ins.results[0]);
    } else if (ins.kind == instruction_kind::literal) {
      of[i] = out.add_literal(ins.constant);
    } else {
      small_vector<value_id> inputs;
      for (const value_id v : ins.inputs) inputs.push_back(of[v.instruction]);
      of[i] = out.add_with_shapes(ins.op, std::move(inputs), ins.results);
    }
  }
  out.outputs.push_back(of[m.outputs[0].instruction]);
  return out;
}

/// The contraction of an instruction with its epilogue; empty where it is none or `split_body` does not split it. Only
/// a target whose passes make prologues passes a `prologue`: called with the body and the value that its ops end in, it
/// gives the input that they read, or nothing where the target's kernels don't know their form; there is no split then.
template <class Program, class Prologue = std::nullptr_t, class Module = typename Program::module_type>
constexpr std::optional<contraction_body<Module>> split_contraction(const Program& whole,
                                                                    const typename Module::instruction& ins,
                                                                    const Prologue& prologue = {}) {
  const located_instruction<Module> found = contraction_of(whole, ins);
  if (!found) return std::nullopt;
  contraction_body<Module> out;
  out.op = found.instruction->op;
  if (found.instruction == &ins) return out;
  const Module& body = *found.module;
  const std::optional<contraction_split> split = split_body(body);
  if (!split || body.outputs.size() != 1) return std::nullopt;
  out.operands[0] = split->operands[0], out.operands[1] = split->operands[1];
  if (split->operands[0] == contraction_split::computed) {
    std::optional<std::size_t> from;
    if constexpr (!std::is_null_pointer_v<Prologue>) from = prologue(body, found.instruction->inputs[0]);
    if (!from) return std::nullopt;
    out.operands[0] = *from;
  }
  out.epilogue_inputs = split->epilogue_inputs;
  if (body.outputs[0].instruction == split->contraction) return out;
  const body_marks marks = mark_body(body, split->contraction);
  out.epilogue = module_after(body, split->contraction, [&](std::uint32_t i) {
    return marks.read[i] || !(marks.prologue[i] || body[i].inputs.empty());
  });
  return out;
}

}  // namespace kiln::lower

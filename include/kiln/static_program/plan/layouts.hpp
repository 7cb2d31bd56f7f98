#pragma once
#include "kiln/lower/contraction.hpp"
#include "kiln/lower/layout_plan.hpp"
#include "kiln/op/linear/convolution.hpp"
#include "kiln/op/nn/lrn.hpp"
#include "kiln/op/nn/pooling.hpp"

namespace kiln::aot {

/// Multiplications of an instruction's convolution where it has a kernel in NHWC, else 0. Its weights are prepared, be
/// they parameters that are `bound` or constants; the kernels compute f32, without groups of several channels.
template <class Program, class Instruction>
constexpr double nhwc_products(const Program& program, const Instruction& ins, bool bound) {
  const auto found = lower::contraction_of(program, ins);
  const auto* conv = found.template get_if<op::convolution>();
  const shape& made = ins.results[0];
  if (!conv || made.rank() != 4 || made.type != dtype::f32) return 0;
  std::size_t weight = 1;
  if (const auto* fused = ins.op.template get_if<op::fused>()) {
    weight = found.instruction->inputs[1].instruction;
    const auto& body = program.module(fused->body);
    std::size_t reads = 0;  // the convolution alone reads its weight
    for (std::uint32_t k = 0; k < body.size(); ++k) {
      const dtype type = body[k].results[0].type;
      if (type != dtype::f32 && (type != dtype::boolean || body[k].kind != instruction_kind::op)) return 0;
      for (const auto v : body[k].inputs) reads += v.instruction == weight;
    }
    if (reads != 1) return 0;
  }
  const auto& w = program.main().producer(ins.inputs[weight]);
  if (bound ? w.kind != instruction_kind::parameter || !w.is_weight : w.kind != instruction_kind::literal) return 0;
  const ints lens = to_ints(w.results[0].lens);
  if (conv->group != 1 && (conv->group != lens[0] || lens[1] != 1)) return 0;
  for (const std::int64_t pad : conv->pads)
    if (pad < 0) return 0;
  return static_cast<double>(kiln::product(to_ints(made.lens))) * static_cast<double>(lens[1] * lens[2] * lens[3]);
}

/// The layouts of a program's results. Programs with small convolutions stay in NCHW: their images fit the L1 cache,
/// and what reads them flattens them. In others a convolution in NCHW would run without a kernel of its own, so that
/// NHWC gains more than a few transpositions cost.
template <class Program> constexpr lower::layout_plan<Program> plan_layouts(const Program& program, bool bound) {
  constexpr double least_products = 4e6, gain = 16;
  const auto& graph = program.main();
  double products = 0;
  for (std::uint32_t i = 0; i < graph.size(); ++i)
    if (graph[i].kind == instruction_kind::op && graph[i].results.size() == 1)
      products += nhwc_products(program, graph[i], bound);
  if (products < least_products) return lower::layout_plan<Program>(program);
  const auto role = [&](const auto& ins) {
    using lower::layout_role;
    const shape& made = ins.results[0];
    if (made.rank() != 4 || made.type != dtype::f32 || ins.results.size() != 1) return layout_role::none;
    if (nhwc_products(program, ins, bound) > 0) return layout_role::prefers_nhwc;
    if (ins.op.template is<op::pooling>() || ins.op.template is<op::lrn>()) return layout_role::propagates;
    return lower::pointwise_role(ins);
  };
  return {program, role, gain};
}

}  // namespace kiln::aot

#include "kiln/lower/contraction.hpp"
#include "kiln/op/linear/deconvolution.hpp"
#include "kiln/runtime/impl/plan/plan.hpp"

namespace kiln::detail {

dimension flops(const program& whole, const module_graph& graph, const basic_instruction<operation>& ins) {
  if (ins.op.is<op::deconvolution>()) {  // every element times a kernel for each of its group's filters
    dimension n = 2;
    for (dimension d : graph.shape_of(ins.inputs[0]).lens) n *= d;
    const dims& weights = graph.shape_of(ins.inputs[1]).lens;
    for (std::size_t d = 1; d < weights.size(); ++d) n *= weights[d];
    return n;
  }
  if (const auto* fused = ins.op.get_if<op::fused>()) {  // a body of steps
    const module_graph& body = whole.module(fused->body);
    dimension n = 0;
    for (std::uint32_t i = 0; i < body.size(); ++i)
      if (body[i].kind == instruction_kind::op && body[i].op.is<op::fused>()) n += flops(whole, body, body[i]);
    if (!(n == dimension(0))) return n;
  }
  const auto found = lower::contraction_of(whole, graph, ins);
  if (!found) return 0;
  const shape in[] = {found.operand(0), found.operand(1)};
  const auto maps = found.instruction->op.maps(in);
  if (!maps) return 0;
  dimension n = 2;
  for (dimension d : maps->extents) n *= d;
  return n;
}

}  // namespace kiln::detail

#include "kiln/runtime/impl/plan.hpp"

namespace kiln::detail {

dimension flops(const program& whole, const module_graph& graph, const basic_instruction<operation>& ins) {
  const auto of = [](const operation& op, std::span<const shape> in) -> dimension {
    if (op.kind() != op_kind::contraction) return 0;
    const auto maps = op.maps(in);
    if (!maps) return 0;
    dimension n = 2;
    for (dimension d : maps->extents) n *= d;
    return n;
  };
  const auto shapes_in = [](const module_graph& g, const basic_instruction<operation>& x) {
    shapes in;
    for (value_id v : x.inputs) in.push_back(g.shape_of(v));
    return in;
  };
  if (!ins.op.is<op::fused>()) return of(ins.op, shapes_in(graph, ins));
  const module_graph& body = whole.module(ins.op.body());
  dimension sum = 0;
  for (std::uint32_t i = 0; i < body.size(); ++i)
    if (body[i].kind == instruction_kind::op) sum += of(body[i].op, shapes_in(body, body[i]));
  return sum;
}

}  // namespace kiln::detail

#include "kiln/runtime/widened_constant.hpp"

#include "kiln/op/pointwise/convert.hpp"

namespace kiln {

widened_constant find_widened_constant(const module_graph& graph, value_id v) {
  small_vector<std::uint32_t> views;
  widened_constant found;
  bool converted = false;
  while (graph.producer(v).kind == instruction_kind::op) {
    const auto& ins = graph.producer(v);
    if (is_view(ins)) {
      views.push_back(v.instruction);
    } else {
      const auto* const convert = ins.op.get_if<op::convert>();
      if (!convert || converted || ins.results[0].type != dtype::f32) return {};
      converted = true;
      found.by = v.instruction;
    }
    v = ins.inputs[0];
  }
  const auto& ins = graph.producer(v);
  const dtype stored = graph.shape_of(v).type;
  if (!converted || ins.kind != instruction_kind::literal || (stored != dtype::f16 && stored != dtype::bf16)) return {};
  found.at = layout::standard(ins.results[0].lens);
  for (std::size_t k = views.size(); k-- > 0;) {
    const auto next = graph[views[k]].op.map(found.at);
    if (!next) return {};
    found.at = *next;
  }
  found.from = &ins.constant;
  return found;
}

}  // namespace kiln

#include "kiln/graph/add_body.hpp"

#include <vector>

#include "kiln/op/control/fused.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/loop.hpp"

namespace kiln {
namespace {

// The op with its bodies where `moved` says they are.
operation with_bodies(const operation& op, const std::vector<module_ref>& moved) {
  if (const auto* b = op.get_if<op::branch>()) {
    op::branch out = *b;
    out.then_body = moved[b->then_body.index];
    out.else_body = moved[b->else_body.index];
    return out;
  }
  if (const auto* l = op.get_if<op::loop>()) {
    op::loop out = *l;
    out.iteration = moved[l->iteration.index];
    return out;
  }
  if (const auto* f = op.get_if<op::fused>()) {
    op::fused out = *f;
    out.body = moved[f->body.index];
    return out;
  }
  return op;
}

module_graph reordered(const module_graph& m, std::span<const value_id> parameters) {
  module_graph out;
  out.name = m.name;
  std::vector<std::uint32_t> renamed(m.size(), value_id{}.instruction);
  for (const value_id v : parameters)
    renamed[v.instruction] = out.add_parameter(m[v.instruction].name.view(), m.shape_of(v)).instruction;
  const auto named = [&](value_id v) { return value_id{renamed[v.instruction], v.result}; };
  for (const std::uint32_t k : m.order()) {
    const auto& i = m[k];
    if (i.kind == instruction_kind::literal) renamed[k] = out.add_literal(i.constant).instruction;
    if (i.kind != instruction_kind::op) continue;
    small_vector<value_id> inputs;
    for (const value_id v : i.inputs) inputs.push_back(named(v));
    renamed[k] = out.add_with_shapes(i.op, std::move(inputs), i.results, i.name.view()).instruction;
  }
  for (const value_id v : m.outputs) out.outputs.push_back(named(v));
  out.output_names = m.output_names;
  return out;
}

}  // namespace

module_ref add_body(program& into, const program& from, std::span<const value_id> parameters) {
  std::vector<module_ref> moved(from.modules());
  for (std::uint32_t k = 0; k < from.modules(); ++k)
    moved[k] = into.add_module(k == 0 ? reordered(from.main(), parameters) : from.module({k}));
  for (const module_ref r : moved) {
    module_graph& m = into.module(r);
    for (std::uint32_t i = 0; i < m.size(); ++i)
      if (m[i].kind == instruction_kind::op) m[i].op = with_bodies(m[i].op, moved);
  }
  return moved[0];
}

}  // namespace kiln

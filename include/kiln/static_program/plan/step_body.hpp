#pragma once
#include "kiln/graph/literal_values.hpp"
#include "kiln/lower/contraction.hpp"
#include "kiln/static_program/plan/draft.hpp"

namespace kiln::aot {

/// Takes a fused step's body over as nodes; `node_of(op)` gives an op's node without its type, dims and operands.
template <class Module, class NodeOf> constexpr void take_body(draft& d, const Module& body, NodeOf node_of) {
  // a fused step's inputs are the body's parameters in their order, which stand first
  for (std::uint32_t k = 0; k < body.size(); ++k) {
    const auto& from = body[k];
    node n;
    if (from.kind == instruction_kind::literal) {
      n.op = node::literal;
      visit_elements(from.constant, 1, [&](const auto& x) {
        words w;
        put_words(w, x);
        n.attributes = w[0];
      });
    } else if (from.kind == instruction_kind::op) {
      n = node_of(from.op);
      for (const auto v : from.inputs) n.inputs.push_back(v.instruction);
    }
    n.type = from.results[0].type;
    n.lens = to_ints(from.results[0].lens);
    d.nodes.push_back(n);
  }
  for (const auto v : body.outputs) d.results.push_back(v.instruction);
}

/// An op that is a step alone becomes a body of one op over parameters.
template <class Module, class Instruction, class NodeOf>
constexpr void take_alone(draft& d, const Module& graph, const Instruction& ins, NodeOf node_of) {
  node n = node_of(ins.op);
  for (std::uint32_t k = 0; k < ins.inputs.size(); ++k) {
    node parameter;
    parameter.type = graph.shape_of(ins.inputs[k]).type;
    parameter.lens = to_ints(graph.shape_of(ins.inputs[k]).lens);
    d.nodes.push_back(parameter);
    n.inputs.push_back(k);
  }
  n.type = ins.results[0].type;
  n.lens = to_ints(ins.results[0].lens);
  d.nodes.push_back(n);
  d.results.push_back(static_cast<std::uint32_t>(d.nodes.size() - 1));
}

constexpr bool is_parameter(const node& n) { return n.op == node::parameter; }
constexpr bool is_contraction(const node& n) { return n.op >= 0 && n.kind == op_kind::contraction; }
/// The split of a step's nodes around its contraction. Its numbers are nodes and inputs of the step at once.
constexpr lower::contraction_split split_of(std::span<const node> nodes) { return lower::split_body(nodes).value(); }

}  // namespace kiln::aot

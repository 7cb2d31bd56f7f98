#pragma once
#include "kiln/runtime/kernel.hpp"

namespace kiln::detail {

/// Whether a kernel with that support may be given the layout.
inline bool supported(const layout& where, stride_support support) {
  if (support == stride_support::any) return true;
  if (support == stride_support::dense) return where.dense();
  return where.lens.empty() || where.lens.back() == dimension(1) || where.strides.back() == dimension(1);
}

/// Elements of the buffer that a layout reaches: repeats count once.
inline dimension distinct_elements(const layout& l) {
  dimension n = 1;
  for (std::size_t d = 0; d < l.lens.size(); ++d)
    if (!(l.strides[d] == dimension(0))) n *= l.lens[d];
  return n;
}

inline bool is_view(const basic_instruction<operation>& i) {
  return i.kind == instruction_kind::op && i.op.kind() == op_kind::view;
}

/// The constant that a value is, or shows through views that need no copy; `where` becomes its layout.
inline const literal* constant_behind(const module_graph& graph, value_id v, layout& where) {
  const auto& ins = graph.producer(v);
  if (ins.kind == instruction_kind::literal) {
    where = layout::standard(ins.results[0].lens);
    return ins.constant.has_symbols() ? nullptr : &ins.constant;
  }
  if (!is_view(ins)) return nullptr;
  const literal* constant = constant_behind(graph, ins.inputs[0], where);
  if (!constant) return nullptr;
  const auto mapped = ins.op.map(where);
  if (!mapped) return nullptr;
  where = *mapped;
  return constant;
}

}  // namespace kiln::detail

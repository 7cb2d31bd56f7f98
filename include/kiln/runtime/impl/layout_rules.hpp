#pragma once
#include "kiln/runtime/kernel.hpp"

namespace kiln::detail {

/// Whether [batch, channels, spatial...] lies with contiguous channels and evenly spaced pixels. Strides of extents 1
/// do not matter.
inline bool channels_last(const layout& where) {
  const std::size_t rank = where.lens.size();
  if (rank < 3 || !(where.strides[1] == dimension(1))) return false;
  std::optional<dimension> step;
  for (std::size_t d = rank; d-- > 0;) {
    if (d == 1 || where.lens[d] == dimension(1)) continue;
    if (step && !(where.strides[d] == *step)) return false;
    step = where.strides[d] * where.lens[d];
  }
  return true;
}

/// Whether a kernel with that support may be given the layout.
inline bool supported(const layout& where, stride_support support) {
  if (support == stride_support::any) return true;
  if (support == stride_support::dense) return where.dense();
  if (support == stride_support::images) return where.dense() || channels_last(where);
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

/// Whether a view of a dense value of those dims is all of it under other dims, in the same order.
inline bool renames_dims(const basic_instruction<operation>& i, const dims& lens) {
  if (!is_view(i)) return false;
  const auto mapped = i.op.map(layout::standard(lens));
  return mapped && mapped->is_standard() && product(mapped->lens) == product(lens);
}

/// Where a value of those dims lies whose transposition lies as `to`.
inline layout before_transpose(const op::transpose& t, const dims& lens, const layout& to) {
  layout at{lens, to.strides, to.offset};
  for (std::size_t d = 0; d < lens.size(); ++d) {
    const std::size_t axis = t.permutation.empty()
                                 ? lens.size() - 1 - d
                                 : static_cast<std::size_t>(normal_axis(t.permutation[d], lens.size()));
    at.strides[axis] = to.strides[d];
  }
  return at;
}

/// Calls `equal(x, y)` for extents that a view takes as equal.
template <class Equal>
void equal_extents(const basic_instruction<operation>& view, const dims& from, Equal&& equal) {
  const dims& to = view.results[0].lens;
  if (view.op.is<op::multibroadcast>()) {
    for (std::size_t k = 0; k < from.size(); ++k)
      if (!(from[k] == dimension(1))) equal(from[k], to[to.size() - from.size() + k]);
  } else if (const auto* along = view.op.get_if<op::broadcast>()) {
    const auto first =
        static_cast<std::size_t>(along->axis < 0 ? along->axis + static_cast<std::int64_t>(to.size()) : along->axis);
    for (std::size_t k = 0; k < from.size() && first + k < to.size(); ++k) equal(from[k], to[first + k]);
  } else if (view.op.is<op::reshape>()) {
    equal(product(from), product(to));
  }
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

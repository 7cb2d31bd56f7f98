#pragma once
#include "kiln/graph/module.hpp"

// What views and concatenations do to layouts.
namespace kiln::lower {

template <class Operation> constexpr bool is_concat(const basic_instruction<Operation>& i) {
  return i.kind == instruction_kind::op && i.op.template is<op::concat>();
}

/// Whether a view of a dense value of those dims is all of it under other dims, in the same order.
template <class Operation> constexpr bool renames_dims(const basic_instruction<Operation>& i, const dims& lens) {
  if (!is_view(i)) return false;
  const auto mapped = i.op.map(layout::standard(lens));
  return mapped && mapped->is_standard() && product(mapped->lens) == product(lens);
}

using permutation = inline_vector<std::size_t, max_rank>;

/// For each dim of a view, the axis of its operand that it shows; nothing if the view is not a permutation.
template <class Operation>
constexpr std::optional<permutation> permutation_of(const basic_instruction<Operation>& i, const dims& from) {
  if (!is_view(i) || !(i.results[0].rank() == from.size())) return std::nullopt;
  layout marked{from, from, 0};
  for (std::size_t a = 0; a < from.size(); ++a) marked.strides[a] = std::int64_t{3} << (2 * a);
  const auto mapped = i.op.map(marked);
  if (!mapped) return std::nullopt;
  permutation out;
  for (std::size_t d = 0; d < from.size(); ++d)
    for (std::size_t a = 0; a < from.size(); ++a)
      if (mapped->strides[d] == marked.strides[a] && mapped->lens[d] == from[a]) out.push_back(a);
  if (out.size() != from.size()) return std::nullopt;
  return out;
}

/// The layout of a value of those dims whose permutation by `axes` has the layout `to`.
constexpr layout before_permutation(const permutation& axes, const dims& lens, const layout& to) {
  layout at{lens, to.strides, to.offset};
  for (std::size_t d = 0; d < axes.size(); ++d) at.strides[axes[d]] = to.strides[d];
  return at;
}

/// The layout of an operand of a concatenation whose result has the layout `whole`. Where that has one dim more (a
/// shuffle's two dims of channels), each operand is one run of channels.
template <class Module>
constexpr layout part_of(const Module& graph, const typename Module::instruction& concat, std::size_t operand,
                         layout whole) {
  const std::size_t rank = concat.results[0].rank();
  if (whole.lens.size() != rank) {
    whole.offset += dimension(static_cast<std::int64_t>(operand)) * whole.strides[1];
    for (std::size_t d = 1; d < rank; ++d) whole.lens[d] = whole.lens[d + 1], whole.strides[d] = whole.strides[d + 1];
    whole.lens.pop_back(), whole.strides.pop_back();
    return whole;
  }
  const auto axis = static_cast<std::size_t>(normal_axis(concat.op.template get_if<op::concat>()->axis, rank));
  dimension start = 0;
  for (std::size_t k = 0; k < operand; ++k) start += graph.shape_of(concat.inputs[k]).lens[axis];
  whole.lens = graph.shape_of(concat.inputs[operand]).lens;
  whole.offset += start * whole.strides[axis];
  return whole;
}

/// Calls `equal(x, y)` for extents that a view takes as equal.
template <class Operation, class Equal>
constexpr void equal_extents(const basic_instruction<Operation>& view, const dims& from, Equal&& equal) {
  const dims& to = view.results[0].lens;
  if (view.op.template is<op::multibroadcast>()) {
    for (std::size_t k = 0; k < from.size(); ++k)
      if (!(from[k] == dimension(1))) equal(from[k], to[to.size() - from.size() + k]);
  } else if (const auto* along = view.op.template get_if<op::broadcast>()) {
    const auto first =
        static_cast<std::size_t>(along->axis < 0 ? along->axis + static_cast<std::int64_t>(to.size()) : along->axis);
    for (std::size_t k = 0; k < from.size() && first + k < to.size(); ++k) equal(from[k], to[first + k]);
  } else if (view.op.template is<op::expect_dims>()) {
    for (std::size_t k = 0; k < from.size(); ++k) equal(from[k], to[k]);
  } else if (view.op.template is<op::reshape>()) {
    equal(product(from), product(to));
  }
}

}  // namespace kiln::lower

#pragma once
#include "kiln/runtime/kernel.hpp"

namespace kiln::detail {

/// Whether [batch, channels, spatial...] lies with contiguous channels and evenly spaced pixels, none of which share
/// memory: not what repeats along images or pixels. Strides of extents 1 do not matter.
inline bool channels_last(const layout& where) {
  const std::size_t rank = where.lens.size();
  if (rank < 3 || !(where.strides[1] == dimension(1))) return false;
  std::optional<dimension> step;
  for (std::size_t d = rank; d-- > 0;) {
    if (d == 1 || where.lens[d] == dimension(1)) continue;
    const dimension stride = where.strides[d];
    if (step ? !(stride == *step) : !at_most(where.lens[1], stride).value_or(false)) return false;
    step = stride * where.lens[d];
  }
  return true;
}

/// Whether the dims from `first` on are row-major without gaps.
inline bool dense_from(const layout& where, std::size_t first) {
  layout inner;
  for (std::size_t d = first; d < where.lens.size(); ++d)
    inner.lens.push_back(where.lens[d]), inner.strides.push_back(where.strides[d]);
  return inner.dense();
}

/// Whether a kernel with that support may be given the layout.
inline bool supported(const layout& where, stride_support support) {
  if (support == stride_support::any) return true;
  if (support == stride_support::dense) return where.dense();
  if (support == stride_support::images) return where.dense() || channels_last(where);
  if (support == stride_support::apart) return channels_last(where) || dense_from(where, 1);
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

/// What reports and errors call an instruction.
inline std::string label_of(const basic_instruction<operation>& i, std::uint32_t index) {
  return i.name.empty() && i.kind == instruction_kind::op ? std::string(i.op.name()) + "#" + std::to_string(index)
                                                          : i.name.str();
}

/// Calls `work`, whose errors then name the instruction.
template <class Work>
void naming(const basic_instruction<operation>& i, std::uint32_t index, const Work& work) {
  try {
    work();
  } catch (error& e) {
    if (i.kind == instruction_kind::op) e.at_op(i.op.name());
    throw e.at_instruction(label_of(i, index));
  }
}

inline bool is_concat(const basic_instruction<operation>& i) {
  return i.kind == instruction_kind::op && i.op.is<op::concat>();
}

/// Whether a view of a dense value of those dims is all of it under other dims, in the same order.
inline bool renames_dims(const basic_instruction<operation>& i, const dims& lens) {
  if (!is_view(i)) return false;
  const auto mapped = i.op.map(layout::standard(lens));
  return mapped && mapped->is_standard() && product(mapped->lens) == product(lens);
}

/// The axes of the operand that the results of a view are, in order; nothing where the view is no permutation.
inline std::optional<inline_vector<std::size_t, max_rank>> permutation_of(const basic_instruction<operation>& i,
                                                                          const dims& from) {
  if (!is_view(i) || !(i.results[0].rank() == from.size())) return std::nullopt;
  layout marked{from, from, 0};
  for (std::size_t a = 0; a < from.size(); ++a) marked.strides[a] = std::int64_t{3} << (2 * a);
  const auto mapped = i.op.map(marked);
  if (!mapped || !(mapped->offset == dimension(0))) return std::nullopt;
  inline_vector<std::size_t, max_rank> out;
  for (std::size_t d = 0; d < from.size(); ++d)
    for (std::size_t a = 0; a < from.size(); ++a)
      if (mapped->strides[d] == marked.strides[a] && mapped->lens[d] == from[a]) out.push_back(a);
  if (out.size() != from.size()) return std::nullopt;
  return out;
}

/// Where a value of those dims lies whose permutation by `axes` lies as `to`.
inline layout before_permutation(const inline_vector<std::size_t, max_rank>& axes, const dims& lens, const layout& to) {
  layout at{lens, to.strides, to.offset};
  for (std::size_t d = 0; d < axes.size(); ++d) at.strides[axes[d]] = to.strides[d];
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
  } else if (view.op.is<op::expect_dims>()) {
    for (std::size_t k = 0; k < from.size(); ++k) equal(from[k], to[k]);
  } else if (view.op.is<op::reshape>()) {
    equal(product(from), product(to));
  }
}

/// What is wrong where two such extents differ in a run.
inline std::string equality(const basic_instruction<operation>& view, dimension x, dimension y,
                            std::string_view where) {
  return std::string(view.op.name()) + ": dimension '" + to_string(x) + "' equals '" + to_string(y) + "'" +
         (where.empty() ? "" : " (at " + std::string(where) + ")");
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

#pragma once
#include "kiln/runtime/impl/layout_rules.hpp"

namespace kiln::detail {

/// A shuffle of the channels of [batch, channels, spatial...]: they are split into two dims, which change places and
/// are joined again.
struct channel_shuffle {
  std::uint32_t join;  ///< the last of its three views
  dims split, turned;  ///< extents behind the first and the second
  inline_vector<std::size_t, max_rank> axes;

  /// Where images lie, their channels as two dims, that are shuffled to lie as `to`; none where no strides say that.
  std::optional<layout> before(const layout& to) const {
    const auto at = reshape_layout(to, turned);
    return at ? std::optional(before_permutation(axes, split, *at)) : std::nullopt;
  }
};

/// The shuffle that alone reads `v`. `only_reader(value)` is the instruction that alone reads a value, or no index.
template <class OnlyReader>
std::optional<channel_shuffle> shuffle_behind(const module_graph& graph, value_id v, const OnlyReader& only_reader) {
  std::uint32_t views[3];
  value_id from = v;
  for (std::uint32_t& view : views) {
    view = only_reader(from);
    if (view >= graph.size() || !is_view(graph[view])) return std::nullopt;
    from = {view, 0};
  }
  const dims& lens = graph.shape_of(v).lens;
  channel_shuffle out{views[2], graph[views[0]].results[0].lens, graph[views[1]].results[0].lens, {}};
  if (lens.size() < 3 || out.split.size() != lens.size() + 1 || !(graph.shape_of(from).lens == lens))
    return std::nullopt;
  if (!graph[views[0]].op.is<op::reshape>() || !graph[views[2]].op.is<op::reshape>()) return std::nullopt;
  for (std::size_t d = 0; d < lens.size(); ++d)
    if (d != 1 && !(out.split[d < 1 ? d : d + 1] == lens[d])) return std::nullopt;
  const auto axes = permutation_of(graph[views[1]], out.split);
  if (!axes) return std::nullopt;
  out.axes = *axes;
  return out;
}

/// Where an operand of a concatenation lies that lies as `whole`. Where that has one dim more, each operand is one of
/// the runs of channels that a shuffle behind it turns.
inline layout part_of(const module_graph& graph, const basic_instruction<operation>& concat, std::size_t operand,
                      layout whole) {
  const std::size_t rank = concat.results[0].rank();
  if (whole.lens.size() != rank) {
    whole.offset += dimension(static_cast<std::int64_t>(operand)) * whole.strides[1];
    for (std::size_t d = 1; d < rank; ++d) whole.lens[d] = whole.lens[d + 1], whole.strides[d] = whole.strides[d + 1];
    whole.lens.pop_back(), whole.strides.pop_back();
    return whole;
  }
  const auto axis = static_cast<std::size_t>(normal_axis(concat.op.get_if<op::concat>()->axis, rank));
  dimension start = 0;
  for (std::size_t k = 0; k < operand; ++k) start += graph.shape_of(concat.inputs[k]).lens[axis];
  whole.lens = graph.shape_of(concat.inputs[operand]).lens;
  whole.offset += start * whole.strides[axis];
  return whole;
}

/// Whether `v` is a concatenation of as many operands as the shuffle has runs of channels, each of them one.
inline bool joins_runs(const module_graph& graph, value_id v, const channel_shuffle& shuffle) {
  const auto& ins = graph.producer(v);
  if (!is_concat(ins) || normal_axis(ins.op.get_if<op::concat>()->axis, ins.results[0].rank()) != 1) return false;
  for (value_id in : ins.inputs)
    if (!(graph.shape_of(in).lens[1] == shuffle.split[2])) return false;
  return shuffle.split[1] == dimension(static_cast<std::int64_t>(ins.inputs.size()));
}

}  // namespace kiln::detail

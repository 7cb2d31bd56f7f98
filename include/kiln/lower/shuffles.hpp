#pragma once
#include "kiln/lower/uses.hpp"

namespace kiln::lower {

/// A shuffle of the channels of [batch, channels, spatial...]: they are split into two dims, which change places and
/// are joined again.
struct channel_shuffle {
  std::uint32_t join = none;  ///< the last of its three views
  dims split, turned;         ///< extents after the first and the second
  permutation axes;

  /// The layout of the source, its channels as two dims, whose shuffle has the layout `to`; none where no strides say
  /// that.
  constexpr std::optional<layout> before(const layout& to) const {
    const auto at = reshape_layout(to, turned);
    return at ? std::optional(before_permutation(axes, split, *at)) : std::nullopt;
  }
};

/// The shuffle that alone reads `v`.
template <class Module>
constexpr std::optional<channel_shuffle> shuffle_after(const Module& graph, const uses& readers, value_id v) {
  std::uint32_t views[3];
  value_id from = v;
  for (std::uint32_t& view : views) {
    view = readers.only_reader(from);
    if (view == none || !is_view(graph[view])) return std::nullopt;
    from = {view, 0};
  }
  const dims& lens = graph.shape_of(v).lens;
  channel_shuffle out{views[2], graph[views[0]].results[0].lens, graph[views[1]].results[0].lens, {}};
  if (lens.size() < 3 || out.split.size() != lens.size() + 1 || !(graph.shape_of(from).lens == lens))
    return std::nullopt;
  if (!graph[views[0]].op.template is<op::reshape>() || !graph[views[2]].op.template is<op::reshape>())
    return std::nullopt;
  for (std::size_t d = 0; d < lens.size(); ++d)
    if (d != 1 && !(out.split[d < 1 ? d : d + 1] == lens[d])) return std::nullopt;
  const auto axes = permutation_of(graph[views[1]], out.split);
  if (!axes) return std::nullopt;
  out.axes = *axes;
  return out;
}

/// Whether `v` is a concatenation each of whose operands is one of the shuffle's runs of channels.
template <class Module> constexpr bool joins_runs(const Module& graph, value_id v, const channel_shuffle& shuffle) {
  const auto& ins = graph.producer(v);
  if (!is_concat(ins) || normal_axis(ins.op.template get_if<op::concat>()->axis, ins.results[0].rank()) != 1)
    return false;
  for (const value_id in : ins.inputs)
    if (!(graph.shape_of(in).lens[1] == shuffle.split[2])) return false;
  return true;
}

}  // namespace kiln::lower

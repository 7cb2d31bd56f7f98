#pragma once
#include "kiln/op/concepts.hpp"

namespace kiln {

/// One number for each spatial dim.
using spatial = inline_vector<std::int64_t, 3>;

namespace detail {

/// How a window slides over the spatial dims of x[batch, channel, spatial...], with every default filled in.
struct window {
  spatial stride{}, dilation{}, begin{}, end{};
};

constexpr std::optional<fault> spatial_fault(std::string_view rule, const spatial& values, std::size_t axes) {
  if (!values.empty() && values.size() != axes) return fault::of(errc::shape_mismatch, rule, axes, values.size());
  for (std::int64_t v : values)
    if (v < 1) return fault::of(errc::invalid_argument, rule, "at least 1", v);
  return std::nullopt;
}

/// What is wrong with the operands x and weights of a convolution, besides their dims.
constexpr std::optional<fault> image_and_weight_fault(std::span<const shape> in, dtype_set types) {
  if (in.size() != 2) return fault::of(errc::invalid_argument, "number of inputs", 2, in.size());
  if (in[0].type != in[1].type)
    return fault::of(errc::shape_mismatch, "operands have one dtype", in[0].type, in[1].type);
  if (!types.contains(in[0].type))
    return fault::of(errc::unsupported, "dtype of the operands", "one that the op computes in", in[0].type);
  return std::nullopt;
}

/// Resolves the attributes against an input of `rank` dims.
constexpr result<window> resolve_window(std::size_t rank, const spatial& stride, const spatial& dilation,
                                        const ints& pads) {
  if (rank < 3 || rank > 5)
    return fault::of(errc::shape_mismatch, "an input has a batch, a channel and one to three spatial dims", "rank 3-5",
                     rank);
  const std::size_t axes = rank - 2;
  if (const auto f = spatial_fault("stride has a positive entry for each spatial dim", stride, axes)) return *f;
  if (const auto f = spatial_fault("dilation has a positive entry for each spatial dim", dilation, axes)) return *f;
  if (!pads.empty() && pads.size() != 2 * axes)
    return fault::of(errc::shape_mismatch, "pads has a begin and an end for each spatial dim", 2 * axes, pads.size());
  window w;
  for (std::size_t d = 0; d < axes; ++d) {
    w.stride.push_back(stride.empty() ? 1 : stride[d]);
    w.dilation.push_back(dilation.empty() ? 1 : dilation[d]);
    w.begin.push_back(pads.empty() ? 0 : pads[d]);
    w.end.push_back(pads.empty() ? 0 : pads[axes + d]);
  }
  return w;
}

/// The op with stride, dilation and pads written out.
template <class Op> constexpr Op with_window(Op op, std::span<const shape> in) {
  const auto w = resolve_window(in.empty() ? 0 : in[0].rank(), op.stride, op.dilation, op.pads);
  if (!w) return op;
  op.stride = w->stride;
  op.dilation = w->dilation;
  op.pads.clear();
  for (std::int64_t n : w->begin) op.pads.push_back(n);
  for (std::int64_t n : w->end) op.pads.push_back(n);
  return op;
}

/// Elements from a window's first to its last.
constexpr dimension window_reach(dimension length, std::int64_t dilation) { return (length - 1) * dilation + 1; }

/// A fault where no window of a spatial dim fits the padded input for any size, or a window has no element.
constexpr std::optional<fault> window_fault(dimension in, dimension length, const window& w, std::size_t d) {
  if (const auto some = at_most(1, length); some && !*some)
    return fault::of(errc::shape_mismatch, "a window has at least one element", 1, length);
  const dimension reach = window_reach(length, w.dilation[d]), padded = in + w.begin[d] + w.end[d];
  if (const auto fits = at_most(reach, padded); fits && !*fits)
    return fault::of(errc::shape_mismatch, "a window fits into the padded input", reach, padded);
  return std::nullopt;
}

/// Windows inside the padded extent.
constexpr dimension window_count(dimension in, dimension length, const window& w, std::size_t d) {
  return (in + (w.begin[d] + w.end[d]) - window_reach(length, w.dilation[d])) / w.stride[d] + 1;
}

}  // namespace detail
}  // namespace kiln

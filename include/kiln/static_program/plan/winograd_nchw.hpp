#pragma once
#include "kiln/op/linear/convolution.hpp"
#include "kiln/op/nn/pooling.hpp"
#include "kiln/static_program/kernel/winograd_nchw.hpp"
#include "kiln/static_program/plan/product.hpp"

namespace kiln::aot {

namespace detail {
constexpr bool all_are(const auto& values, std::int64_t wanted) {
  for (std::int64_t v : values)
    if (v != wanted) return false;
  return true;
}
}  // namespace detail

/// How a convolution of two spatial dims runs by Winograd; no filters where its sizes forbid or do not repay
/// that: the transformed weights stay in L2, and several tiles meet each. `out` is its result, or
/// what is left when windows of 2x2 of that are halved.
constexpr kernels::winograd_nchw_extents plan_winograd_nchw(const op::convolution& op, const place& image,
                                                            const place& weight, const place& out) {
  constexpr std::int64_t most_bytes = 256 * 1024;
  constexpr kernels::winograd_nchw_extents none{.filters = 0};
  const ints &x = image.lens, &w = weight.lens;
  if (x.size() != 4 || image.type != dtype::f32 || out.type != dtype::f32 || op.group != 1 ||
      !detail::all_are(op.stride, 1) || !detail::all_are(op.dilation, 1))
    return none;
  if (w[2] != 3 || w[3] != 3 || w[0] % 16 != 0 || w[1] % 16 != 0 || weight.offset != 0 ||
      weight.strides != row_major(w))
    return none;
  // tiles begin inside the image or a weight's reach before it
  for (const std::int64_t pad : op.pads)
    if (pad < 0 || pad > 2) return none;
  const auto pad = [&](std::size_t k) { return op.pads.empty() ? 0 : op.pads[k]; };
  kernels::winograd_nchw_extents f;
  f.channels = w[1], f.filters = w[0], f.height = x[2], f.width = x[3];
  f.top = pad(0), f.left = pad(1);
  f.out_height = x[2] + pad(0) + pad(2) - 2, f.out_width = x[3] + pad(1) + pad(3) - 2;
  f.x_channel = image.strides[1], f.x_row = image.strides[2];
  f.y_channel = out.strides[1], f.y_row = out.strides[2];
  f.halved = out.lens[2] != f.out_height;
  if (image.strides[3] != 1 || out.strides[3] != 1 || f.tile_rows() * f.tile_columns() < 4 ||
      f.weights() * 4 > most_bytes)
    return none;
  return f;
}

/// Whether a convolution's epilogue computes each filter's results alike, in f32.
constexpr bool filters_alone(std::span<const node> nodes, std::span<const place> in) {
  for (const node& n : nodes)
    if (n.type != dtype::f32 && (n.type != dtype::boolean || n.op == node::parameter)) return false;
  for (std::uint32_t k : split_of(nodes).epilogue_inputs) {
    const ints &lens = in[k].lens, &strides = in[k].strides;
    for (std::size_t d = 0; d < lens.size(); ++d)
      if (lens[d] != 1 && strides[d] != 0 && (d != 1 || strides[d] != 1)) return false;
  }
  return true;
}

/// Whether a pooling takes the maximum of 2x2 windows side by side over all of `in`.
constexpr bool halves(const op::pooling& op, const place& in) {
  return op.mode == op::pooling_mode::max && op.lengths.size() == 2 && detail::all_are(op.lengths, 2) &&
         op.stride.size() == 2 && detail::all_are(op.stride, 2) && detail::all_are(op.dilation, 1) &&
         detail::all_are(op.pads, 0) && in.lens[2] % 2 == 0 && in.lens[3] % 2 == 0;
}

}  // namespace kiln::aot

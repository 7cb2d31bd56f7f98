#pragma once
#include "kiln/op/linear/convolution.hpp"
#include "kiln/static_program/kernel/winograd_nhwc.hpp"
#include "kiln/static_program/plan/prepared_weights.hpp"

namespace kiln::aot {

/// Whether vectors of channels read an operand: its channels are contiguous, or one value.
constexpr bool along_channels(const place& p) {
  return p.lens.size() == 4 && (p.lens[1] == 1 || p.strides[1] == 1 || p.strides[1] == 0);
}

/// Rows [.., m, channels] as the pixels of an image of one column. Rank 0 where the rows are not evenly spaced.
constexpr place rows_as_image(const place& p) {
  place image{p.at, p.type, {1, p.lens.back(), 1, 1}, {0, p.strides.back(), 0, 0}, p.offset};
  for (std::size_t d = p.lens.size() - 1; d-- > 0;) {
    if (p.lens[d] == 1) continue;
    if (image.lens[2] == 1)
      image.strides[2] = p.strides[d];
    else if (p.strides[d] != image.strides[2] * image.lens[2])
      return {};
    image.lens[2] *= p.lens[d];
  }
  return image;
}

/// A product of rows with one matrix as a 1x1 convolution; no filters where the strides of an operand of the step keep
/// vectors of columns from reading it.
constexpr kernels::window_extents plan_rows(std::span<const node> nodes, std::span<const place> in, const place& out) {
  const lower::contraction_split split = split_of(nodes);
  const place &weight = in[split.operands[1]], rows = rows_as_image(in[split.operands[0]]), to = rows_as_image(out);
  const ints& w = weight.lens;
  kernels::window_extents p;
  p.filters = 0;
  bool serves = rows.lens.size() == 4 && to.lens.size() == 4 && (to.strides[1] == 1 || to.lens[1] == 1);
  for (std::size_t d = 0; d + 2 < w.size(); ++d) serves = serves && (w[d] == 1 || weight.strides[d] == 0);
  for (const node& n : nodes)
    serves = serves && (n.type == dtype::f32 || (n.type == dtype::boolean && n.op != node::parameter));
  for (std::uint32_t k : split.epilogue_inputs) serves = serves && along_channels(rows_as_image(in[k]));
  if (!serves) return p;
  p.channels = w[w.size() - 2], p.filters = w.back();
  p.height = p.out_height = rows.lens[2];
  p.x_channel = rows.strides[1], p.x_row = rows.strides[2], p.x_column = p.channels;
  return p;
}

/// Whether a product reads its right operand, a weight, in panels.
constexpr bool reads_panels(std::span<const node> nodes, std::span<const place> in, const place& out) {
  const lower::contraction_split split = split_of(nodes);
  const std::size_t right = split.operands[1];
  for (std::uint32_t k : split.epilogue_inputs)
    if (k == right) return false;
  const place& w = in[right];
  return w.lens.size() != 4 && kiln::product(w.lens) >= 1024 && plan_rows(nodes, in, out).filters != 0;
}

/// How a convolution of two spatial dims runs over windows of an image; no filters where it has another dtype or
/// groups of several channels. `weight` counts by its dims only.
constexpr kernels::window_extents plan_windows(const op::convolution& op, const place& image, const place& weight,
                                               const place& out) {
  const ints &x = image.lens, &w = weight.lens;
  kernels::window_extents p;
  p.filters = 0;
  if (x.size() != 4 || image.type != dtype::f32 || weight.type != dtype::f32 || out.type != dtype::f32) return p;
  if (op.group != 1 && (op.group != x[1] || w[0] != x[1])) return p;
  for (const std::int64_t pad : op.pads)
    if (pad < 0) return p;
  const auto each = [](const auto& list, std::size_t k, std::int64_t otherwise) {
    return list.empty() ? otherwise : list[k];
  };
  p.channels = x[1], p.filters = w[0], p.height = x[2], p.width = x[3];
  p.out_height = out.lens[2], p.out_width = out.lens[3];
  p.kernel_rows = w[2], p.kernel_columns = w[3];
  p.row_stride = each(op.stride, 0, 1), p.column_stride = each(op.stride, 1, 1);
  p.row_dilation = each(op.dilation, 0, 1), p.column_dilation = each(op.dilation, 1, 1);
  p.top = each(op.pads, 0, 0), p.left = each(op.pads, 1, 0);
  p.x_channel = image.strides[1], p.x_row = image.strides[2], p.x_column = image.strides[3];
  if (x[1] == 1) p.x_channel = 1;
  return p;
}

/// Estimated work of Winograd over `tiles` tiles of `points` products each, in products of one element; its
/// weights take `more_bytes` than untransformed ones, and each block of about 24 tiles reads them from a cache that is
/// shared. Few tiles fill the register tile badly. Fitted to measurements at AVX-512.
constexpr double winograd_work(double tiles, double points, double inputs, double outputs, double more_bytes) {
  const double blocks = tiles > 24 ? tiles / 24 : 1;
  const double filled = tiles >= 24 ? 1.0 : 1 + 2 / (tiles > 1 ? tiles : 1);
  return tiles * points * (inputs * outputs * filled * 1.05 + 20 * (inputs + outputs)) +
         6 * (more_bytes > 0 ? more_bytes : 0) * (blocks < 2 ? blocks : 2);
}

/// How Winograd computes what `plan_windows` says, with the tiles that are estimated to take the least work;
/// no filters where windows are. Bytes of weights count because each block of tiles reads them from a cache that may be
/// shared.
constexpr kernels::winograd_nhwc_extents plan_winograd_nhwc(const kernels::window_extents& p) {
  kernels::winograd_nhwc_extents best;
  best.filters = 0;
  if (p.kernel_rows != 3 || p.kernel_columns != 3 || p.row_stride != 1 || p.column_stride != 1 || p.row_dilation != 1 ||
      p.column_dilation != 1 || p.channels % 16 != 0 || p.x_channel != 1 || p.filters < 16 || p.top > 2 || p.left > 2)
    return best;
  const std::int64_t columns = (p.filters + 15) / 16 * 16;
  double least = static_cast<double>(p.out_height * p.out_width * columns * p.channels * 9);
  for (const int outputs : {2, 4}) {
    kernels::winograd_nhwc_extents f;
    f.channels = p.channels, f.filters = p.filters, f.height = p.height, f.width = p.width;
    f.out_height = p.out_height, f.out_width = p.out_width, f.top = p.top, f.left = p.left;
    f.x_row = p.x_row, f.x_column = p.x_column;
    f.outputs = outputs;
    const double work =
        winograd_work(f.tiles(), f.points(), p.channels, columns, 4 * (f.weights() - 9 * p.channels * columns));
    if (work < least) least = work, best = f;
  }
  return best;
}

/// How a convolution with a result in NHWC is computed, and the form of its weights.
struct nhwc_method {
  step_kind kind = step_kind::windows;
  weight_form form = weight_form::panels;
};
constexpr nhwc_method choose_nhwc_method(const op::convolution& op, const place& image, const place& weight,
                                         const place& out) {
  if (op.group != 1) return {step_kind::depthwise, weight_form::depthwise};
  const kernels::winograd_nhwc_extents f = plan_winograd_nhwc(plan_windows(op, image, weight, out));
  if (f.filters == 0) return {};
  return {step_kind::winograd_nhwc, f.outputs == 2 ? weight_form::panels_2 : weight_form::panels_4};
}

}  // namespace kiln::aot

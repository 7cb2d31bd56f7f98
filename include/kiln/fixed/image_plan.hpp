#pragma once
#include "kiln/fixed/prepared_weights.hpp"
#include "kiln/graph/module.hpp"
#include "kiln/kernel/fixed_image_filtering.hpp"
#include "kiln/op/linear/convolution.hpp"
#include "kiln/op/nn/lrn.hpp"
#include "kiln/op/nn/pooling.hpp"

namespace kiln::fixed {

/// Strides of a value [n, channels, rows, columns] with its channels last.
constexpr ints channels_last(const ints& lens) {
  ints s{lens[1] * lens[2] * lens[3], 1, lens[1] * lens[3], lens[1]};
  return s;
}

/// Whether vectors of channels read an operand of an image's step: its channels lie side by side, or are one value.
constexpr bool along_channels(const place& p) {
  return p.lens.size() == 4 && (p.lens[1] == 1 || p.strides[1] == 1 || p.strides[1] == 0);
}

/// A value of matrices as an image of one column: its rows are [.., m], its channels the last dim. Rank 0 where the
/// rows are not evenly spaced.
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

/// A product of rows with one matrix as windows of 1x1; no filters where an operand of the step does not lie so that
/// vectors of columns read it.
constexpr kernels::window_extents plan_rows(std::span<const node> nodes, std::span<const place> in, const place& out) {
  const auto [left, right] = product_operands(nodes);
  const place rows = rows_as_image(in[left]), to = rows_as_image(out);
  const ints& w = in[right].lens;
  kernels::window_extents p;
  p.filters = 0;
  bool serves = rows.lens.size() == 4 && to.lens.size() == 4 && (to.strides[1] == 1 || to.lens[1] == 1);
  for (std::size_t d = 0; d + 2 < w.size(); ++d) serves = serves && (w[d] == 1 || in[right].strides[d] == 0);
  for (const node& n : nodes)
    serves = serves && (n.type == dtype::f32 || (n.type == dtype::boolean && n.op != node::parameter));
  for (std::uint32_t k : epilogue_inputs(nodes)) serves = serves && along_channels(rows_as_image(in[k]));
  if (!serves) return p;
  p.channels = w[w.size() - 2], p.filters = w.back();
  p.height = p.out_height = rows.lens[2];
  p.x_channel = rows.strides[1], p.x_row = rows.strides[2], p.x_column = p.channels;
  return p;
}

/// Whether a product reads its right operand, a weight, in panels.
constexpr bool reads_panels(std::span<const node> nodes, std::span<const place> in, const place& out) {
  const std::size_t right = product_operands(nodes).rhs;
  for (std::uint32_t k : epilogue_inputs(nodes))
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

/// Estimated work of minimal filtering over `tiles` tiles of `points` products each, in products of one element; its
/// weights take `more_bytes` than untransformed ones, and each block of about 24 tiles reads them from a cache that is
/// shared. Few tiles fill the register tile badly. Fitted to measurements at AVX-512.
constexpr double filtering_work(double tiles, double points, double inputs, double outputs, double more_bytes) {
  const double blocks = tiles > 24 ? tiles / 24 : 1;
  const double filled = tiles >= 24 ? 1.0 : 1 + 2 / (tiles > 1 ? tiles : 1);
  return tiles * points * (inputs * outputs * filled * 1.05 + 20 * (inputs + outputs)) +
         6 * (more_bytes > 0 ? more_bytes : 0) * (blocks < 2 ? blocks : 2);
}

/// How minimal filtering computes what `plan_windows` says, with the tiles that are estimated to take the least work;
/// no filters where windows are. Bytes of weights count because each block of tiles reads them from a cache that may be
/// shared.
constexpr kernels::image_filtering_extents plan_image_filtering(const kernels::window_extents& p) {
  kernels::image_filtering_extents best;
  best.filters = 0;
  if (p.kernel_rows != 3 || p.kernel_columns != 3 || p.row_stride != 1 || p.column_stride != 1 || p.row_dilation != 1 ||
      p.column_dilation != 1 || p.channels % 16 != 0 || p.x_channel != 1 || p.filters < 16 || p.top > 2 || p.left > 2)
    return best;
  const std::int64_t columns = (p.filters + 15) / 16 * 16;
  double least = static_cast<double>(p.out_height * p.out_width * columns * p.channels * 9);
  for (const int outputs : {2, 4}) {
    kernels::image_filtering_extents f;
    f.channels = p.channels, f.filters = p.filters, f.height = p.height, f.width = p.width;
    f.out_height = p.out_height, f.out_width = p.out_width, f.top = p.top, f.left = p.left;
    f.x_row = p.x_row, f.x_column = p.x_column;
    f.outputs = outputs;
    const double work =
        filtering_work(f.tiles(), f.points(), p.channels, columns, 4 * (f.weights() - 9 * p.channels * columns));
    if (work < least) least = work, best = f;
  }
  return best;
}

/// How a convolution whose result lies with its channels last is computed, and the form of its weights.
struct image_method {
  step_kind kind = step_kind::windows;
  weight_form form = weight_form::panels;
};
constexpr image_method choose_image_method(const op::convolution& op, const place& image, const place& weight,
                                           const place& out) {
  if (op.group != 1) return {step_kind::depthwise, weight_form::depthwise};
  const kernels::image_filtering_extents f = plan_image_filtering(plan_windows(op, image, weight, out));
  if (f.filters == 0) return {};
  return {step_kind::image_filtering, f.outputs == 2 ? weight_form::panels_2 : weight_form::panels_4};
}

/// The product of an instruction, alone or in a body, or the instruction's own op.
template <class Program, class Instruction>
constexpr const auto& product_of(const Program& program, const Instruction& ins) {
  if (const auto* fused = ins.op.template get_if<op::fused>()) {
    const auto& body = program.module(fused->body);
    for (std::uint32_t k = 0; k < body.size(); ++k)
      if (body[k].kind == instruction_kind::op && body[k].op.kind() == op_kind::contraction) return body[k].op;
  }
  return ins.op;
}

/// Which results of a program lie with their channels last: those of convolutions whose weights are prepared, be they
/// parameters that are `bound` or constants, and what follows from these element by element, by pooling or by
/// normalisation. Programs whose convolutions are small keep planes: there the images fit the first-level cache, and
/// what reads them flattens them.
template <class Program>
constexpr small_vector<bool> images_with_channels_last(const Program& program, bool bound) {
  constexpr double least_products = 4e6;
  const auto& graph = program.main();
  small_vector<bool> last;
  last.resize(graph.size(), false);
  double products = 0;
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const auto& ins = graph[i];
    if (ins.kind != instruction_kind::op || ins.results.size() != 1) continue;
    const shape& made = ins.results[0];
    if (made.rank() != 4 || made.type != dtype::f32) continue;
    const auto* fused = ins.op.template get_if<op::fused>();
    const op::convolution* conv = ins.op.template get_if<op::convolution>();
    std::size_t weight = 1;
    bool plain = true;  // all that the body computes is f32, or conditions, and the convolution alone reads its weight
    if (fused && fused->kind == fusion::contraction) {
      const auto& body = program.module(fused->body);
      for (std::uint32_t k = 0; k < body.size(); ++k) {
        const dtype type = body[k].results[0].type;
        plain = plain && (type == dtype::f32 || (type == dtype::boolean && body[k].kind == instruction_kind::op));
        if (body[k].kind != instruction_kind::op || body[k].op.kind() != op_kind::contraction) continue;
        conv = body[k].op.template get_if<op::convolution>();
        weight = body[k].inputs[1].instruction;
      }
      std::size_t reads = 0;
      for (std::uint32_t k = 0; k < body.size(); ++k)
        for (const auto v : body[k].inputs) reads += v.instruction == weight;
      plain = plain && reads == 1;
    }
    if (conv) {
      const auto& w = graph.producer(ins.inputs[weight]);
      const bool held =
          bound ? w.kind == instruction_kind::parameter && w.is_weight : w.kind == instruction_kind::literal;
      if (!plain || !held) continue;
      const ints lens = to_ints(w.results[0].lens), out = to_ints(made.lens);
      if (conv->group != 1 && (conv->group != lens[0] || lens[1] != 1)) continue;
      bool inside = kiln::product(lens) != 0 && kiln::product(out) != 0;
      for (const std::int64_t pad : conv->pads) inside = inside && pad >= 0;
      last[i] = inside;
      products += static_cast<double>(kiln::product(out)) * static_cast<double>(lens[1] * lens[2] * lens[3]);
    } else if ((fused && fused->kind == fusion::pointwise) || (!fused && ins.op.kind() == op_kind::pointwise) ||
               ins.op.template is<op::concat>()) {
      for (const auto v : ins.inputs) {
        const shape& read = graph.shape_of(v);
        last[i] =
            last[i] || (v.result == 0 && last[v.instruction] && read.rank() == 4 && !(read.lens[1] == dimension(1)));
      }
    } else if (ins.op.template is<op::pooling>() || ins.op.template is<op::lrn>()) {
      last[i] = last[ins.inputs[0].instruction];
    }
  }
  if (products < least_products)
    for (bool& l : last) l = false;
  return last;
}

}  // namespace kiln::fixed

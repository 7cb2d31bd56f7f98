#include "kiln/interface/migraphx/impl/operators/lowering.hpp"

// Products. A type that kiln computes no products in is widened first.
namespace kiln::migraphx {

namespace {

void expect_matrices(const lowering& c) {
  c.expect(2);
  c.expect_same_type();
  const dims l = c.in(0).get_shape().lens, r = c.in(1).get_shape().lens;
  bool equal = l.size() == r.size() && l.size() >= 2;
  for (std::size_t d = 0; equal && d + 2 < l.size(); ++d) equal = same(l[d], r[d]).value_or(true);
  if (!equal)
    raise(fault::of(errc::shape_mismatch, "matrices have the same leading extents (multibroadcast spreads one)", l, r));
}

value_list add_dot(lowering& c) {
  expect_matrices(c);
  return {c.in(0).dot(c.in(1))};
}
// Bytes, or 8-bit floats whose products are f32.
value_list add_quant_dot(lowering& c) {
  expect_matrices(c);
  const dtype wide = is_float(c.in(0).type()) ? dtype::f32 : dtype::i32;
  return {c.in(0).convert(wide).dot(c.in(1).convert(wide))};
}

std::size_t spatial_axes(const lowering& c) {
  const std::size_t rank = c.in(0).rank();
  if (rank < 3) raise(fault::of(errc::shape_mismatch, "rank of an image", 3, rank));
  return rank - 2;
}
spatial kernel_of(value weights) {
  spatial out;
  for (std::size_t d = 2; d < weights.rank(); ++d) out.push_back(weights.dim(static_cast<std::int64_t>(d)).value());
  return out;
}
op::convolution convolution_of(const lowering& c) {
  c.expect(2);
  const std::size_t axes = spatial_axes(c);
  op::convolution out;
  out.stride = spatial_of(c, "stride", axes);
  out.dilation = spatial_of(c, "dilation", axes);
  out.group = c.integer("group");
  const std::size_t mode = c.word("padding_mode", {"default_", "same_lower", "same_upper"});
  out.pads = mode == 0 ? paddings(c, "padding", axes)
                       : same_padding(c.in(0), kernel_of(c.in(1)), out.stride, out.dilation, mode == 2);
  return out;
}
value_list add_convolution(lowering& c) {
  const op::convolution op = convolution_of(c);
  c.expect_same_type();
  return {c.in(0).conv(c.in(1), op)};
}
value_list add_quant_convolution(lowering& c) {
  const op::convolution op = convolution_of(c);
  const dtype wide = is_float(c.in(0).type()) ? dtype::f32 : dtype::i32;
  return {c.in(0).convert(wide).conv(c.in(1).convert(wide), op)};
}
value_list add_convolution_backwards(lowering& c) {
  c.expect(2);
  c.expect_same_type();
  const std::size_t axes = spatial_axes(c);
  op::deconvolution op;
  op.stride = spatial_of(c, "stride", axes);
  op.dilation = spatial_of(c, "dilation", axes);
  op.group = c.integer("group");
  op.pads = paddings(c, "padding", axes);
  return {c.build.add(op, c.in(0), c.in(1))};
}

}  // namespace

operator_table linear_operators() {
  static constexpr std::string_view window =
      "padding: [0, 0], stride: [1, 1], dilation: [1, 1], group: 1, padding_mode: default_";
  static constexpr operator_row table[] = {
      {"convolution", window, add_convolution},
      {"convolution_backwards", window, add_convolution_backwards},
      {"deconvolution", window, add_convolution_backwards},
      {"dot", "", add_dot},
      {"quant_convolution", window, add_quant_convolution},
      {"quant_dot", "", add_quant_dot},
  };
  return table;
}

}  // namespace kiln::migraphx

#include "kiln/interface/migraphx/impl/operators/lowering.hpp"
#include "kiln/op/nn/roi_align.hpp"

// Windows over images.
namespace kiln::migraphx {

namespace {

value_list add_pooling(lowering& c) {
  c.expect(1);
  const value x = c.in(0);
  if (x.rank() < 3) raise(fault::of(errc::shape_mismatch, "rank of an image", 3, x.rank()));
  const std::size_t axes = x.rank() - 2, mode = c.word("mode", {"average", "max", "lpnorm"});
  if (c.flag("dyn_global")) {
    ints spatial_axes;
    for (std::size_t d = 2; d < x.rank(); ++d) spatial_axes.push_back(static_cast<std::int64_t>(d));
    if (mode == 0) return {x.reduce_mean(spatial_axes)};
    if (mode == 1) return {x.reduce_max(spatial_axes)};
    const double p = static_cast<double>(c.integer("lp_order"));
    const value order = c.build.scalar(x.type(), p), root = c.build.scalar(x.type(), 1 / p);
    return {x.abs().pow(order).reduce_sum(spatial_axes).pow(root)};
  }
  op::pooling op;
  op.mode = mode == 0 ? op::pooling_mode::average : mode == 1 ? op::pooling_mode::max : op::pooling_mode::lp;
  op.lengths = spatial_of(c, "lengths", axes);
  op.stride = spatial_of(c, "stride", axes);
  op.dilation = spatial_of(c, "dilations", axes);
  op.ceil_mode = c.flag("ceil_mode");
  op.count_include_pad = c.flag("count_include_pad");
  op.lp_order = c.integer("lp_order");
  const std::size_t padding = c.word("padding_mode", {"default_", "same_lower", "same_upper"});
  op.pads =
      padding == 0 ? paddings(c, "padding", axes) : same_padding(x, op.lengths, op.stride, op.dilation, padding == 2);
  return {x.pool(op)};
}

// Columns of the windows of x under weights w: [positions, channels * kernel].
value_list add_im2col(lowering& c) {
  c.expect(2);
  const value x = c.in(0), w = c.in(1);
  if (x.rank() != 4 || w.rank() != 4)
    raise(fault::of(errc::shape_mismatch, "rank of an image and its weights", 4, x.get_shape().lens));
  const std::int64_t channels = x.dim(1).value(), height = w.dim(2).value(), width = w.dim(3).value();
  const spatial stride = spatial_of(c, "stride", 2), dilation = spatial_of(c, "dilation", 2);
  const ints pads = paddings(c, "padding", 2);
  op::pad around;
  around.pads = {0, 0, pads[0], pads[1], 0, 0, pads[2], pads[3]};
  const value image = c.build.add(around, x);
  const std::int64_t rows = (image.dim(2).value() - dilation[0] * (height - 1) - 1) / stride[0] + 1,
                     columns = (image.dim(3).value() - dilation[1] * (width - 1) - 1) / stride[1] + 1;
  value_list taps;
  for (std::int64_t i = 0; i < height; ++i)
    for (std::int64_t j = 0; j < width; ++j) {
      const std::int64_t top = i * dilation[0], left = j * dilation[1];
      op::slice part{{2, 3}, {top, left}, {}, {stride[0], stride[1]}};
      part.ends = {top + (rows - 1) * stride[0] + 1, left + (columns - 1) * stride[1] + 1};
      taps.push_back(image.slice(part).reshape({x.dim(0), channels, rows * columns, 1}));
    }
  const value all = taps.size() == 1 ? taps[0] : c.build.add(op::concat{3}, taps);
  return {all.transpose({0, 2, 1, 3}).reshape({x.dim(0) * (rows * columns), channels * height * width})};
}

value_list add_roialign(lowering& c) {
  c.expect(3);
  op::roi_align op;
  op.height = c.integer("output_height");
  op.width = c.integer("output_width");
  op.samples = c.integer("sampling_ratio");
  op.scale = static_cast<float>(c.real("spatial_scale"));
  op.half_pixel = c.word("coordinate_transformation_mode", {"half_pixel", "output_half_pixel"}) == 0;
  op.greatest = c.word("mode", {"avg", "max"}) == 1 || c.text("mode") == "max";
  return {c.build.add(op, c.in(0), c.in(1), c.in(2).convert(dtype::i64))};
}

value_list add_resize(lowering& c) {
  c.expect(1, 2);
  constexpr std::string_view transforms[] = {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                             "tf_half_pixel_for_nn"};
  const auto& given = c.op.values();
  attributes with{{"mode", c.text("mode")},
                  {"coordinate_transformation_mode", c.text("coordinate_transformation_mode")},
                  {"nearest_mode", c.text("nearest_mode")}};
  bool known = false;
  for (const std::string_view t : transforms) known = known || t == c.text("coordinate_transformation_mode");
  if (!known)
    raise(errc::invalid_argument, "how coordinates are transformed: found " + c.text("coordinate_transformation_mode"));
  value scales, sizes;
  if (c.has(1))
    (is_float(c.in(1).type()) ? scales : sizes) = c.in(1);
  else if (!given.at("sizes").empty())
    sizes = c.build.constant(literal::of<std::int64_t>({dtype::i64, {c.long_integers("sizes").size()}},
                                                       std::span<const std::int64_t>(c.long_integers("sizes"))));
  else
    scales = c.build.constant(literal::of<float>({dtype::f32, {given.at("scales").size()}},
                                                 std::span<const float>(given.at("scales").get<std::vector<float>>())));
  if (with["mode"] == "linear" || with["mode"] == "cubic") with.erase("nearest_mode");
  return c.onnx("Resize", 13, {c.in(0), value(), scales, sizes}, with);
}

value_list add_gridsample(lowering& c) {
  c.expect(2);
  return c.onnx("GridSample", 20, {c.in(0), c.in(1)},
                {{"align_corners", c.flag("align_corners") ? 1 : 0},
                 {"mode", c.text("mode")},
                 {"padding_mode", c.text("padding_mode")}});
}

}  // namespace

ints paddings(const lowering& c, const char* name, std::size_t axes) {
  ints pads = c.integers(name);
  if (pads.size() == axes)  // the same on both sides
    for (std::size_t d = 0; d < axes; ++d) pads.push_back(pads[d]);
  if (pads.size() != 2 * axes) raise(fault::of(errc::invalid_argument, "numbers of padding", 2 * axes, pads.size()));
  return pads;
}

spatial spatial_of(const lowering& c, const char* name, std::size_t axes) {
  const ints given = c.integers(name);
  if (given.size() != axes)
    raise(fault::of(errc::invalid_argument, "numbers in a list with one for each spatial axis", axes, given.size()));
  if (axes > 3) raise(fault::of(errc::unsupported, "spatial axes", 3, axes));
  spatial out;
  for (const std::int64_t n : given) out.push_back(n);
  return out;
}

ints same_padding(value x, const spatial& lengths, const spatial& stride, const spatial& dilation, bool upper) {
  ints begin, end;
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    const std::int64_t in = x.dim(static_cast<std::int64_t>(d) + 2).value(),
                       kernel = (lengths[d] - 1) * dilation[d] + 1, out = (in + stride[d] - 1) / stride[d],
                       all = std::max<std::int64_t>(0, (out - 1) * stride[d] + kernel - in);
    begin.push_back(upper ? all / 2 : all - all / 2);
    end.push_back(all - begin[d]);
  }
  for (const std::int64_t n : end) begin.push_back(n);
  return begin;
}

operator_table window_operators() {
  static constexpr operator_row table[] = {
      {"gridsample", "mode: linear, padding_mode: zeros, align_corners: false", add_gridsample},
      {"im2col", "padding: [0, 0], stride: [1, 1], dilation: [1, 1], padding_mode: default_", add_im2col},
      {"pooling",
       "mode: average, padding: [0, 0], padding_mode: default_, stride: [1, 1], lengths: [1, 1], dilations: [1, 1], "
       "ceil_mode: false, count_include_pad: false, lp_order: 2, dyn_global: false",
       add_pooling},
      {"resize",
       "scales: [], sizes: [], nearest_mode: floor, mode: nearest, coordinate_transformation_mode: half_pixel",
       add_resize},
      {"roialign",
       "coordinate_transformation_mode: half_pixel, mode: avg, output_height: 1, output_width: 1, sampling_ratio: 0, "
       "spatial_scale: 1.0",
       add_roialign},
  };
  return table;
}

}  // namespace kiln::migraphx

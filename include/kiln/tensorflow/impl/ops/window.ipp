#include "kiln/tensorflow/impl/ops/window.hpp"

#include <algorithm>

// Convolutions and pooling. The program's are of [batch, channels, spatial...]: a node of the other layout stands
// between two transposes, which layout assignment takes out again.
namespace kiln::tensorflow {

namespace {

using onnx::channels_first, onnx::channels_last;

value as_first(value x, bool last) { return last ? channels_first(x) : x; }
value as_given(value x, bool last) { return last ? channels_last(x) : x; }

// The spatial dims of an input of `rank`.
std::size_t spatial_dims(const node_context& c, value x, std::size_t least = 1) {
  if (x.rank() < least + 2 || x.rank() > 5)
    c.malformed("an image has a batch, channels and " + std::to_string(least) + " to 3 spatial dims, found " +
                kiln::to_string(x.get_shape()));
  return x.rank() - 2;
}

// The spatial numbers of a list that has one for each dim of the layout.
spatial spatial_part(const node_context& c, std::string_view name, std::span<const std::int64_t> all, std::size_t axes,
                     bool last) {
  if (all.empty()) c.malformed("attribute '" + std::string(name) + "' is missing");
  if (all.size() != axes + 2)
    c.malformed(std::string(name) + " has a number for each of " + std::to_string(axes + 2) + " dims");
  spatial out;
  for (std::size_t d = 0; d < axes + 2; ++d) {
    const bool is_spatial = last ? d > 0 && d + 1 < axes + 2 : d > 1;
    if (all[d] < 1 || all[d] > (std::int64_t{1} << 31)) c.malformed(std::string(name) + " is out of range");
    if (is_spatial)
      out.push_back(all[d]);
    else if (all[d] != 1)
      c.unsupported(std::string(name) + " over the batch or the channels");
  }
  return out;
}
spatial spatial_attribute(const node_context& c, std::string_view name, std::size_t axes, bool last) {
  return spatial_part(c, name, c.integers(name), axes, last);
}

spatial dilations_of(const node_context& c, std::size_t axes, bool last) {
  return c.integers("dilations").empty() ? spatial(axes, 1) : spatial_attribute(c, "dilations", axes, last);
}
std::string_view padding_of(const node_context& c) {
  require(c, "padding");
  return c.choice("padding", {"VALID", "SAME", "EXPLICIT"});
}

ints explicit_pads(const node_context& c, std::size_t axes, bool last) {
  const auto all = c.integers("explicit_paddings");
  if (all.size() != 2 * (axes + 2)) c.malformed("explicit_paddings has two numbers for each dim");
  ints pads(2 * axes, 0);
  for (std::size_t d = 0; d < axes; ++d) {
    const std::size_t at = d + (last ? 1 : 2);
    pads[d] = all[2 * at];
    pads[axes + d] = all[2 * at + 1];
    if (pads[d] < 0 || pads[axes + d] < 0) c.malformed("a padding is not negative");
  }
  return pads;
}

// As many outputs as strides begin in the extent.
std::int64_t padding_of_same(std::int64_t extent, std::int64_t stride, std::int64_t reach) {
  return std::max<std::int64_t>(0, ((extent + stride - 1) / stride - 1) * stride + reach - extent);
}

// The pads of x [batch, channels, spatial...] under attribute `padding`.
ints pads_of(const node_context& c, value x, const spatial& kernel, const spatial& stride, const spatial& dilation,
             bool last) {
  const std::size_t axes = kernel.size();
  const std::string_view mode = padding_of(c);
  if (mode == "EXPLICIT") return explicit_pads(c, axes, last);
  if (mode == "VALID") return ints(2 * axes, 0);
  return same_pads(c, x, kernel, stride, dilation);
}

// The leading `axes` extents of a filter [spatial..., in, out].
spatial kernel_of(const node_context& c, value filter, std::size_t axes) {
  if (filter.rank() != axes + 2)
    c.malformed("the filter has the image's rank, found " + kiln::to_string(filter.get_shape()));
  spatial out;
  for (std::size_t d = 0; d < axes; ++d) {
    if (!filter.dim(static_cast<std::int64_t>(d)).is_constant()) c.unsupported("a filter of symbolic extents");
    out.push_back(filter.dim(static_cast<std::int64_t>(d)).value());
  }
  return out;
}
// [spatial..., in, out] as [out, in, spatial...].
value filter_first(value filter) {
  const auto rank = static_cast<std::int64_t>(filter.rank());
  ints order{rank - 1, rank - 2};
  for (std::int64_t d = 0; d + 2 < rank; ++d) order.push_back(d);
  return filter.transpose(order);
}

variables convolve(node_context& c, value x, value w, const spatial& kernel, std::int64_t group, bool last) {
  const std::size_t axes = kernel.size();
  op::convolution conv;
  conv.stride = spatial_attribute(c, "strides", axes, last);
  conv.dilation = dilations_of(c, axes, last);
  conv.pads = pads_of(c, x, kernel, conv.stride, conv.dilation, last);
  conv.group = group;
  return {as_given(x.conv(w, conv), last)};
}

variables import_conv(node_context& c) {
  const bool last = has_last_channels(c);
  const value x = as_first(c.in(0), last), filter = c.in(1);
  const std::size_t axes = spatial_dims(c, x);
  const spatial kernel = kernel_of(c, filter, axes);
  const dimension own = x.dim(1), read = filter.dim(static_cast<std::int64_t>(axes));
  std::int64_t group = 1;
  if (own.is_constant() && read.is_constant() && read.value() > 0) {
    if (own.value() % read.value())
      c.malformed("the filter reads " + kiln::to_string(read) + " channels, the image has " + kiln::to_string(own));
    group = own.value() / read.value();
  }
  return convolve(c, x, filter_first(filter), kernel, group, last);
}

// A filter [height, width, channels, multiplier].
variables import_depthwise(node_context& c) {
  const bool last = has_last_channels(c);
  const value x = as_first(c.in(0), last), filter = c.in(1);
  const std::size_t axes = spatial_dims(c, x, 2);
  const spatial kernel = kernel_of(c, filter, axes);
  const dimension channels = filter.dim(2);
  if (!channels.is_constant()) c.unsupported("a filter of symbolic extents");
  const value w = filter.transpose({2, 3, 0, 1}).reshape({channels * filter.dim(3), 1, filter.dim(0), filter.dim(1)});
  return convolve(c, x, w, kernel, channels.value(), last);
}

void expect_size(const node_context& c, std::string_view what, dimension stated, dimension found) {
  if (const auto agrees = same(stated, found); agrees && !*agrees)
    c.malformed("input_sizes means " + std::string(what) + " of " + kiln::to_string(stated) + ", found " +
                kiln::to_string(found));
}

// The input of a convolution from its output: input_sizes, filter, output.
variables import_transposed_conv(node_context& c) {
  const bool last = has_last_channels(c);
  const value x = as_first(c.in(2), last), filter = c.in(1);
  const std::size_t axes = spatial_dims(c, x);
  const spatial kernel = kernel_of(c, filter, axes);
  op::deconvolution d;
  d.stride = spatial_attribute(c, "strides", axes, last);
  d.dilation = dilations_of(c, axes, last);
  d.pads = ints(2 * axes, 0);
  d.output_padding = spatial(axes, 0);
  const std::string_view mode = padding_of(c);
  const ints given = mode == "EXPLICIT" ? explicit_pads(c, axes, last) : ints{};
  const small_vector<dimension> sizes = c.dimensions(0, "the input's sizes");
  if (sizes.size() != axes + 2 && sizes.size() != axes) c.malformed("input_sizes has a number for each dim");
  const std::size_t first = sizes.size() == axes ? 0 : last ? 1 : 2;
  if (sizes.size() == axes + 2) {
    expect_size(c, "batch", sizes[0], x.dim(0));
    expect_size(c, "channels", sizes[last ? axes + 1 : 1], filter.dim(static_cast<std::int64_t>(axes)));
  }
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t reach = (kernel[i] - 1) * d.dilation[i] + 1, stride = d.stride[i];
    const dimension in = x.get_shape().lens[i + 2], whole = (in - 1) * stride + reach, out = sizes[first + i];
    const std::int64_t padded = mode == "SAME" ? reach - 1 : mode == "EXPLICIT" ? given[i] + given[axes + i] : 0;
    if (out.is_constant()) expect_size(c, "an extent", (out + padded - reach + stride).value() / stride, in);
    const dimension cut = whole - out;
    if (!cut.is_constant()) c.unsupported("an extent of " + kiln::to_string(out) + " of " + kiln::to_string(in));
    const std::int64_t total = cut.value();
    d.pads[i] = mode == "EXPLICIT" ? given[i] : std::max<std::int64_t>(0, total) / 2;
    if (total < d.pads[i])
      d.output_padding[i] = d.pads[i] - total;
    else
      d.pads[axes + i] = total - d.pads[i];
  }
  return {as_given(c.build.add(d, x, filter_first(filter)), last)};
}

variables pool(node_context& c, op::pooling_mode mode, std::span<const std::int64_t> lengths,
               std::span<const std::int64_t> strides) {
  const bool last = has_last_channels(c);
  const value x = as_first(c.in(0), last);
  const std::size_t axes = spatial_dims(c, x);
  op::pooling p;
  p.mode = mode;
  p.lengths = spatial_part(c, "ksize", lengths, axes, last);
  p.stride = spatial_part(c, "strides", strides, axes, last);
  p.dilation = spatial(axes, 1);
  p.pads = pads_of(c, x, p.lengths, p.stride, p.dilation, last);
  return {as_given(x.pool(p), last)};
}
template <op::pooling_mode Mode> variables import_pool(node_context& c) {
  return pool(c, Mode, c.integers("ksize"), c.integers("strides"));
}
variables import_max_pool_2(node_context& c) {
  const ints lengths = integers_of(c, 1, "the window"), strides = integers_of(c, 2, "the strides");
  return pool(c, op::pooling_mode::max, {lengths.data(), lengths.size()}, {strides.data(), strides.size()});
}

// [channels] along the channels of x.
value along_channels(const node_context& c, value x, value vector) {
  if (vector.rank() != 1 || x.rank() < 2) c.malformed("a bias is a vector of the channels");
  return has_last_channels(c) ? vector : vector.unsqueeze(axes_from(1, x.rank() - 1));
}
variables import_bias_add(node_context& c) { return {c.in(0) + along_channels(c, c.in(0), c.in(1))}; }

// x by scale, offset, mean and variance, which are the inputs from `first` on.
value normalized(const node_context& c, value x, std::size_t first) {
  const value scale = c.in(first), offset = c.in(first + 1), mean = c.in(first + 2), variance = c.in(first + 3);
  const value factor = scale * (variance + c.real("epsilon", 1e-4f)).rsqrt(), shift = offset - mean * factor;
  const value y = x.convert(scale.type()) * along_channels(c, x, factor) + along_channels(c, x, shift);
  return y.convert(x.type());
}
void refuse_training(const node_context& c) {
  if (c.flag("is_training", true))
    c.unsupported("is the form for training (is_training), which takes mean and variance of the batch");
}
variables import_batch_norm(node_context& c) {
  refuse_training(c);
  return {normalized(c, c.in(0), 1), c.in(3), c.in(4)};
}

// y under a function of TensorFlow's, by its operator's name; empty for another name.
value activated(const node_context& c, value y, std::string_view name) {
  const auto scalar = [&](double v) { return c.build.scalar(y.type(), v); };
  if (name == "Identity") return y;
  if (name == "Relu") return y.relu();
  if (name == "Relu6") return c.build.add(op::clip{}, y, scalar(0), scalar(6));
  if (name == "Elu") return y.elu();
  if (name == "LeakyRelu") return y.leaky_relu({c.real("leakyrelu_alpha", .2f)});
  if (name == "Tanh") return y.tanh();
  if (name == "Sigmoid") return y.sigmoid();
  if (name == "_MklSwish") return y * y.sigmoid();
  if (name == "GeluApproximate" || name == "GeluExact") return y.gelu({name == "GeluApproximate"});
  return {};
}

variables import_batch_norm_ex(node_context& c) {
  refuse_training(c);
  value y = normalized(c, c.in(0), 1);
  if (c.integer("num_side_inputs", 0) > 0) y = y + c.in(5);
  const std::string_view mode = c.choice("activation_mode", {"Identity", "Relu"});
  return {activated(c, y, mode), c.in(3), c.in(4)};
}
variables import_fused_conv(node_context& c) { return {with_fused_ops(c, import_conv(c)[0].tensor)}; }
variables import_fused_depthwise(node_context& c) { return {with_fused_ops(c, import_depthwise(c)[0].tensor)}; }

}  // namespace

ints same_pads(const node_context& c, value x, const spatial& kernel, const spatial& stride, const spatial& dilation) {
  const std::size_t axes = kernel.size();
  ints pads(2 * axes, 0);
  for (std::size_t d = 0; d < axes; ++d) {
    const dimension extent = stride[d] == 1 ? dimension(1) : x.get_shape().lens[d + 2];
    if (!extent.is_constant()) c.unsupported("padding SAME with a stride over an extent of " + kiln::to_string(extent));
    const std::int64_t total = padding_of_same(extent.value(), stride[d], (kernel[d] - 1) * dilation[d] + 1);
    pads[d] = total / 2;
    pads[axes + d] = total - total / 2;
  }
  return pads;
}

value with_fused_ops(const node_context& c, value y, std::size_t operand) {
  for (const std::string& name : c.texts("fused_ops")) {
    if (name == "BiasAdd") {
      y = y + along_channels(c, y, c.in(operand++));
    } else if (name == "Add") {
      y = y + c.in(operand++);
    } else if (name == "FusedBatchNorm") {
      y = normalized(c, y, operand);
      operand += 4;
    } else if (name == "Prelu") {  // of tfjs
      const value slope = c.in(operand++);
      y = c.build.add(op::prelu{}, y, slope.rank() == 1 && y.rank() > 1 ? along_channels(c, y, slope) : slope);
    } else {
      const value made = activated(c, y, name);
      if (!made) c.unsupported("fuses '" + name + "'");
      y = made;
    }
  }
  if (operand < c.size())
    c.malformed("fused_ops take the first " + std::to_string(operand) + " inputs, found " + std::to_string(c.size()));
  return y;
}

op_importer_table window_importers() {
  using enum op::pooling_mode;
  static constexpr op_importer table[] = {
      {domain, "_FusedBatchNormEx", 1, import_batch_norm_ex, "inference"},
      {domain, "_FusedConv2D", 1, import_fused_conv},
      {domain, "_FusedDepthwiseConv2dNative", 1, import_fused_depthwise},
      {domain, "AvgPool", 1, import_pool<average>},
      {domain, "AvgPool3D", 1, import_pool<average>},
      {domain, "BiasAdd", 1, import_bias_add},
      {domain, "Conv2D", 1, import_conv},
      {domain, "Conv2DBackpropInput", 1, import_transposed_conv},
      {domain, "Conv3D", 1, import_conv},
      {domain, "Conv3DBackpropInputV2", 1, import_transposed_conv},
      {domain, "DepthwiseConv2dNative", 1, import_depthwise},
      {domain, "FusedBatchNorm", 1, import_batch_norm, "inference"},
      {domain, "FusedBatchNormV2", 1, import_batch_norm, "inference"},
      {domain, "FusedBatchNormV3", 1, import_batch_norm, "inference"},
      {domain, "FusedDepthwiseConv2dNative", 1, import_fused_depthwise, "of tfjs"},
      {domain, "MaxPool", 1, import_pool<max>},
      {domain, "MaxPool3D", 1, import_pool<max>},
      {domain, "MaxPoolV2", 1, import_max_pool_2},
  };
  return table;
}

}  // namespace kiln::tensorflow

#include <algorithm>
#include <numeric>

#include "kiln/tensorflow/impl/ops/window.hpp"
#include "kiln/tensorflow/impl/tflite/ops/common.hpp"

// Convolutions, products, pooling and normalization. Images are [batch, height, width, channels].
namespace kiln::tensorflow {

namespace {

using onnx::channels_first, onnx::channels_last;

std::int64_t factor(const node_context& c, std::string_view name, std::int64_t otherwise = 0) {
  const std::int64_t n = c.integer(name, otherwise);
  if (n < 1 || n > (std::int64_t{1} << 31)) c.malformed(std::string(name) + " is " + std::to_string(n));
  return n;
}
std::string_view padding_name(const node_context& c) {
  const std::int64_t p = c.integer("padding", 0);
  if (p != 0 && p != 1) c.malformed("padding is number " + std::to_string(p));
  return p == 0 ? "SAME" : "VALID";
}
spatial plane(const node_context& c, std::string_view height, std::string_view width, std::int64_t otherwise = 0) {
  return {factor(c, height, otherwise), factor(c, width, otherwise)};
}
void expect_image(const node_context& c, value x, std::size_t rank = 4) {
  if (x.rank() != rank)
    c.malformed("an image has rank " + std::to_string(rank) + ", found " + kiln::to_string(x.get_shape()));
}
value with_bias(const node_context& c, value y, std::size_t input) { return c.has(input) ? y + c.in(input) : y; }

// x [n, h, w, c] by a filter [out, in, h, w] under the node's strides, dilations and padding.
variables convolve(node_context& c, value filter, std::int64_t group) {
  expect_image(c, c.in(0));
  const value x = channels_first(c.in(0));
  spatial kernel;
  for (const std::size_t d : {2, 3}) {
    if (!lens_of(filter)[d].is_constant()) c.unsupported("a filter of symbolic extents");
    kernel.push_back(lens_of(filter)[d].value());
  }
  op::convolution conv;
  conv.stride = plane(c, "stride_h", "stride_w");
  conv.dilation = plane(c, "dilation_h_factor", "dilation_w_factor", 1);
  conv.pads = padding_name(c) == "SAME" ? same_pads(c, x, kernel, conv.stride, conv.dilation) : ints(4, 0);
  conv.group = group;
  return {with_bias(c, channels_last(x.conv(filter, conv)), 2)};
}
// A filter [out, height, width, in].
variables import_conv(node_context& c) {
  expect_image(c, c.in(0));
  expect_image(c, c.in(1));
  const dimension own = c.in(0).dim(3), read = c.in(1).dim(3);
  std::int64_t group = 1;
  if (own.is_constant() && read.is_constant() && read.value() > 0) {
    if (own.value() % read.value())
      c.malformed("the filter reads " + kiln::to_string(read) + " channels, the image has " + kiln::to_string(own));
    group = own.value() / read.value();
  }
  return convolve(c, c.in(1).transpose({0, 3, 1, 2}), group);
}
// A filter [1, height, width, channels * multiplier].
variables import_depthwise(node_context& c) {
  expect_image(c, c.in(0));
  expect_image(c, c.in(1));
  const dimension channels = c.in(0).dim(3);
  if (!channels.is_constant()) c.unsupported("an image of symbolic channels");
  return convolve(c, c.in(1).transpose({3, 0, 1, 2}), channels.value());
}

std::vector<onnx::attribute> window_attributes(const node_context& c, bool deep, bool dilated) {
  const auto list = [&](std::string_view prefix, std::string_view suffix, std::int64_t otherwise) {
    std::vector<std::int64_t> out{1};
    for (const char* axis : {"d", "h", "w"})
      if (deep || *axis != 'd') out.push_back(factor(c, std::string(prefix) + axis + std::string(suffix), otherwise));
    out.push_back(1);
    return out;
  };
  std::vector<onnx::attribute> out{text_attribute("padding", padding_name(c)),
                                   numbers_attribute("strides", list("stride_", "", 0))};
  if (dilated) out.push_back(numbers_attribute("dilations", list("dilation_", "_factor", 1)));
  return out;
}
variables biased(node_context& c, const variables& y, std::size_t input) { return {with_bias(c, y[0].tensor, input)}; }

// output_shape, a filter [out, height, width, in], x, bias.
variables import_transpose_conv(node_context& c) {
  expect_image(c, c.in(1));
  return biased(c,
                as_tensorflow(c, "Conv2DBackpropInput", {c.in(0), c.in(1).transpose({1, 2, 0, 3}), c.in(2)},
                              window_attributes(c, false, false)),
                3);
}
// MediaPipe's: x, a filter [out, height, width, in], a bias. Its options are a padding, which counts from 1, and
// strides of the columns and of the rows; an activation may follow. As many outputs as strides and the filter's rest
// cover.
variables import_transpose_conv_bias(node_context& c) {
  expect_image(c, c.in(0));
  expect_image(c, c.in(1));
  const auto words = c.integers("words");
  if (words.size() < 3 || words[0] < 1 || words[0] > 2) c.malformed("its options are no padding and two strides");
  for (std::size_t i = 3; i < words.size(); ++i)
    if (words[i] != 0)
      c.unsupported("number " + std::to_string(words[i]) + " at place " + std::to_string(i) + " of its options");
  const dims in = lens_of(c.in(0)), filter = lens_of(c.in(1));
  dims sizes{in[0], in[1], in[2], filter[0]};
  std::vector<std::int64_t> strides{1, words[2], words[1], 1};
  for (const std::size_t d : {1, 2}) {
    if (strides[d] < 1) c.malformed("a stride is " + std::to_string(strides[d]));
    if (!filter[d].is_constant()) c.unsupported("a filter of symbolic extents");
    sizes[d] = sizes[d] * strides[d];
    if (words[0] == 2) sizes[d] = sizes[d] + std::max<std::int64_t>(0, filter[d].value() - strides[d]);
  }
  return biased(c,
                as_tensorflow(c, "Conv2DBackpropInput",
                              {dimensions_value(c.build, {4}, {sizes[0], sizes[1], sizes[2], sizes[3]}),
                               c.in(1).transpose({1, 2, 0, 3}), c.in(0)},
                              {text_attribute("padding", words[0] == 1 ? "SAME" : "VALID"),
                               numbers_attribute("strides", std::move(strides))}),
                2);
}
variables import_conv_3d(node_context& c) {
  return biased(c, as_tensorflow(c, "Conv3D", {c.in(0), c.in(1)}, window_attributes(c, true, true)), 2);
}
variables import_transpose_conv_3d(node_context& c) {
  return biased(
      c, as_tensorflow(c, "Conv3DBackpropInputV2", {c.in(0), c.in(1), c.in(2)}, window_attributes(c, true, true)), 3);
}

variables pool(node_context& c, std::string_view op_type, value x) {
  std::vector<onnx::attribute> attributes = window_attributes(c, false, false);
  attributes.push_back(numbers_attribute("ksize", {1, factor(c, "filter_height"), factor(c, "filter_width"), 1}));
  return as_tensorflow(c, op_type, {x}, std::move(attributes));
}
variables import_average_pool(node_context& c) { return pool(c, "AvgPool", c.in(0)); }
variables import_max_pool(node_context& c) { return pool(c, "MaxPool", c.in(0)); }
variables import_l2_pool(node_context& c) { return {pool(c, "AvgPool", c.in(0) * c.in(0))[0].tensor.sqrt()}; }

// Weights [units, features]. All dims of x but the features are one, unless the node keeps them.
variables import_fully_connected(node_context& c) {
  if (c.integer("weights_format", 0) != 0) c.unsupported("its weights are in shuffled blocks");
  value x = c.in(0);
  const value w = c.in(1);
  if (w.rank() != 2) c.malformed("the weights are a matrix, found " + kiln::to_string(w.get_shape()));
  const dimension features = w.dim(1);
  if (!c.flag("keep_num_dims")) {
    const dimension all = kiln::product(lens_of(x));
    if (all.is_constant() && features.is_constant() && (features.value() == 0 || all.value() % features.value()))
      c.malformed("the weights read " + kiln::to_string(features) + " features, the input is " +
                  kiln::to_string(x.get_shape()));
    if (x.rank() != 2 || !(x.dim(1) == features)) x = x.reshape({all / features, features});
  }
  return {with_bias(c, x.dot(w.transpose({1, 0})), 2)};
}

variables import_softmax(node_context& c) {
  const float beta = c.real("beta", 0);
  return {(beta == 1 ? c.in(0) : c.in(0) * beta).softmax(-1)};
}
variables import_l2_norm(node_context& c) {
  const value x = c.in(0);
  const value sum = (x * x).reduce_sum({static_cast<std::int64_t>(x.rank()) - 1});
  return {x / sum.max(scalar_like(c, x, 1e-6)).sqrt()};
}
variables import_lrn(node_context& c) {
  return as_tensorflow(
      c, "LRN", {c.in(0)},
      {number_attribute("depth_radius", c.integer("radius", 0)), real_attribute("bias", c.real("bias", 0)),
       real_attribute("alpha", c.real("alpha", 0)), real_attribute("beta", c.real("beta", 0))});
}

}  // namespace

tflite_table tflite_layer_operators() {
  static constexpr tflite_operator table[] = {
      {"AVERAGE_POOL_2D", import_average_pool},
      {"BATCH_MATMUL", nullptr, "BatchMatMulV2"},
      {"BATCH_TO_SPACE_ND", nullptr, "BatchToSpaceND"},
      {"CONV_2D", import_conv},
      {"Convolution2DTransposeBias", import_transpose_conv_bias, {}, "of MediaPipe"},
      {"CONV_3D", import_conv_3d},
      {"CONV_3D_TRANSPOSE", import_transpose_conv_3d},
      {"CUMSUM", nullptr, "Cumsum"},
      {"DEPTHWISE_CONV_2D", import_depthwise},
      {"DEPTH_TO_SPACE", nullptr, "DepthToSpace"},
      {"FULLY_CONNECTED", import_fully_connected},
      {"L2_NORMALIZATION", import_l2_norm},
      {"L2_POOL_2D", import_l2_pool},
      {"LOCAL_RESPONSE_NORMALIZATION", import_lrn},
      {"LOG_SOFTMAX", nullptr, "LogSoftmax"},
      {"MAX_POOL_2D", import_max_pool},
      {"MEAN", nullptr, "Mean"},
      {"REDUCE_ALL", nullptr, "All"},
      {"REDUCE_ANY", nullptr, "Any"},
      {"REDUCE_MAX", nullptr, "Max"},
      {"REDUCE_MIN", nullptr, "Min"},
      {"REDUCE_PROD", nullptr, "Prod"},
      {"RESIZE_BILINEAR", nullptr, "ResizeBilinear"},
      {"RESIZE_NEAREST_NEIGHBOR", nullptr, "ResizeNearestNeighbor"},
      {"SOFTMAX", import_softmax},
      {"SPACE_TO_BATCH_ND", nullptr, "SpaceToBatchND"},
      {"SPACE_TO_DEPTH", nullptr, "SpaceToDepth"},
      {"SUM", nullptr, "Sum"},
      {"TRANSPOSE_CONV", import_transpose_conv},
  };
  return table;
}

}  // namespace kiln::tensorflow

#include "kiln/onnx/impl/ops/quantize.hpp"

// Quantized operators of com.microsoft.
namespace kiln::onnx {

namespace {

// (stored - zero) * scale of inputs i, i + 1 and i + 2.
value real_input(node_context& c, std::size_t i) { return dequantized_input(c, i, i + 1, i + 2); }
value stored(node_context& c, value y, std::size_t i, dtype t) { return quantized_output(c, y, i, t); }

template <class Op> variables import_qlinear_binary(node_context& c) {
  return {stored(c, c.build.add(Op{}, real_input(c, 0), real_input(c, 3)), 6, c.in(0).type())};
}
variables import_qlinear_leaky_relu(node_context& c) {
  return {stored(c, real_input(c, 0).leaky_relu({c.real("alpha", .01f)}), 3, c.in(0).type())};
}
variables import_qlinear_sigmoid(node_context& c) { return {stored(c, real_input(c, 0).sigmoid(), 3, c.in(0).type())}; }

// Inputs: the condition; x and y, each with scale and zero; the result's scale and zero.
variables import_qlinear_where(node_context& c) {
  return {stored(c, c.in(0).where(real_input(c, 1), real_input(c, 4)), 7, c.in(1).type())};
}
variables import_qlinear_softmax(node_context& c) {
  const value x = real_input(c, 0);
  const std::int64_t axis = axis_within(c, c.integer("axis", -1), x.rank());
  // as Softmax before operator set 13, which takes all dims from the axis on
  const bool flat = c.integer("opset", 13) < 13;
  const value y = flat ? x.flatten(axis).softmax(1).reshape(x.get_shape().lens) : x.softmax(axis);
  return {stored(c, y, 3, c.in(0).type())};
}
variables import_qlinear_reduce_mean(node_context& c) {
  const value x = real_input(c, 0);
  const ints axes = axes_attribute(c, x.rank());
  const value mean = x.reduce_mean(axes);
  return {stored(c, c.flag("keepdims", true) ? mean : mean.squeeze(axes), 3, c.in(0).type())};
}

variables import_qlinear_concat(node_context& c) {
  if (c.size() < 5 || (c.size() - 2) % 3 != 0) c.malformed("inputs are a scale, a zero point, and three for each part");
  small_vector<value> parts;
  for (std::size_t i = 2; i < c.size(); i += 3) parts.push_back(real_input(c, i));
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), parts[0].rank());
  return {stored(c, parts.size() == 1 ? parts[0] : c.build.add(op::concat{axis}, parts), 0, c.in(2).type())};
}

template <class Pool> variables pooled(node_context& c, Pool pool) {
  const bool last = c.flag("channels_last");
  value x = real_input(c, 0);
  if (last) x = channels_first(x);
  value y = pool(x);
  if (last) y = channels_last(y);
  return {stored(c, y, 3, c.in(0).type())};
}
variables import_qlinear_average_pool(node_context& c) {
  return pooled(c, [&](value x) {
    node_context at = c.with_inputs({variable(x)});
    return average_pool(at)[0].tensor;
  });
}
variables import_qlinear_global_average_pool(node_context& c) {
  return pooled(c, [&](value x) { return x.reduce_mean(axes_from(2, x.rank())); });
}

}  // namespace

std::span<const op_importer> microsoft_quantize_importers() {
  static constexpr op_importer table[] = {
      {microsoft, "QLinearAdd", 1, import_qlinear_binary<op::add>},
      {microsoft, "QLinearAveragePool", 1, import_qlinear_average_pool},
      {microsoft, "QLinearConcat", 1, import_qlinear_concat},
      {microsoft, "QLinearGlobalAveragePool", 1, import_qlinear_global_average_pool},
      {microsoft, "QLinearLeakyRelu", 1, import_qlinear_leaky_relu},
      {microsoft, "QLinearMul", 1, import_qlinear_binary<op::mul>},
      {microsoft, "QLinearReduceMean", 1, import_qlinear_reduce_mean},
      {microsoft, "QLinearSigmoid", 1, import_qlinear_sigmoid},
      {microsoft, "QLinearSoftmax", 1, import_qlinear_softmax},
      {microsoft, "QLinearWhere", 1, import_qlinear_where},
  };
  return table;
}

}  // namespace kiln::onnx

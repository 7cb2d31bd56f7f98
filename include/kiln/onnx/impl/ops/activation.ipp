#include "kiln/onnx/impl/ops/activation.hpp"

namespace kiln::onnx {

namespace {

variables import_celu(node_context& c) { return {c.build.add(op::celu{c.real("alpha", 1)}, c.in(0))}; }
variables import_elu(node_context& c) { return {c.in(0).elu({c.real("alpha", 1)})}; }
variables import_hard_sigmoid(node_context& c) {
  return {c.build.add(op::hard_sigmoid{c.real("alpha", 0.2f), c.real("beta", 0.5f)}, c.in(0))};
}
variables import_leaky_relu(node_context& c) { return {c.in(0).leaky_relu({c.real("alpha", 0.01f)})}; }
variables import_selu_1(node_context& c) {
  return {c.build.add(op::selu{c.real("alpha", 1.6732f), c.real("gamma", 1.0507f)}, c.in(0))};
}
variables import_selu(node_context& c) {
  const op::selu otherwise;
  return {c.build.add(op::selu{c.real("alpha", otherwise.alpha), c.real("gamma", otherwise.gamma)}, c.in(0))};
}
variables import_shrink(node_context& c) {
  // integers shrink in f32, the type of the attributes
  const value x = c.in(0);
  const value wide = is_float(x.type()) ? x : x.convert(dtype::f32);
  return {c.build.add(op::shrink{c.real("lambd", 0.5f), c.real("bias", 0)}, wide).convert(x.type())};
}
variables import_swish(node_context& c) { return {swish(c.in(0), c.real("alpha", 1))}; }
variables import_quick_gelu(node_context& c) { return {swish(c.in(0), c.real("alpha", 1.702f))}; }
variables import_thresholded_relu(node_context& c) {
  return {c.build.add(op::thresholded_relu{c.real("alpha", 1)}, c.in(0))};
}

variables import_gelu(node_context& c) { return {c.in(0).gelu({c.choice("approximate", {"none", "tanh"}) == "tanh"})}; }
variables import_fast_gelu(node_context& c) { return {(c.has(1) ? c.in(0) + c.in(1) : c.in(0)).gelu({true})}; }
variables import_bias_gelu(node_context& c) { return {(c.in(0) + c.in(1)).gelu()}; }

// Before operator set 7 a slope of one dim runs along the channels; since then it broadcasts as numpy does.
variables import_prelu_1(node_context& c) {
  const value x = c.in(0), slope = c.in(1);
  const bool channels = slope.rank() == 1 && x.rank() > 1 && !(slope.dim(0) == dimension(1));
  return {c.build.add(op::prelu{}, x, channels ? x.make_along(1, slope) : slope)};
}

value softmax_over(value x, const ints& axes, bool logarithm) {
  const value shifted = x - x.reduce_max(axes);
  const value e = shifted.exp(), sum = e.reduce_sum(axes);
  return logarithm ? shifted - sum.log() : e / sum;
}
template <bool Logarithm> variables import_softmax(node_context& c) {
  const value x = c.in(0);
  return {softmax_over(x, {axis_within(c, c.integer("axis", -1), x.rank())}, Logarithm)};
}
// Before operator set 13 the input is a matrix: its rows begin at this axis. Where that is the rank, each element is a
// row.
std::int64_t row_axis(const node_context& c) {
  const auto rank = static_cast<std::int64_t>(c.in(0).rank());
  const std::int64_t axis = c.integer("axis", 1);
  return axis == rank ? rank : axis_within(c, axis, c.in(0).rank());
}
template <bool Logarithm> variables import_softmax_1(node_context& c) {
  const value x = c.in(0);
  const std::int64_t axis = row_axis(c);
  if (static_cast<std::size_t>(axis) == x.rank())
    return {softmax_over(x.unsqueeze({axis}), {axis}, Logarithm).squeeze({axis})};
  if (static_cast<std::size_t>(axis) + 1 == x.rank()) return {softmax_over(x, {axis}, Logarithm)};
  return {softmax_over(x.flatten(axis), {1}, Logarithm).reshape(x.get_shape().lens)};
}

value hardmax_along(node_context& c, value x, std::int64_t axis) {
  if (x.dim(axis) == dimension(0)) return x;  // there is nothing to choose from
  return indices_along(c, x.rank(), axis, x.dim(axis)).equal(x | op::arg_max{axis}).convert(x.type());
}
variables import_hardmax(node_context& c) {
  const value x = c.in(0);
  return {hardmax_along(c, x, axis_within(c, c.integer("axis", -1), x.rank()))};
}
variables import_hardmax_1(node_context& c) {
  const value x = c.in(0);
  const value flat = x.flatten(row_axis(c));
  return {hardmax_along(c, flat, 1).reshape(x.get_shape().lens)};
}

// Experimental operators of the first operator sets, which models of that time still have.
variables import_affine(node_context& c) { return {c.in(0) * c.real("alpha", 1) + c.real("beta", 0)}; }
variables import_scale(node_context& c) { return {c.in(0) * c.real("scale", 1)}; }
variables import_scaled_tanh(node_context& c) {
  return {(c.in(0) * c.real("beta", .5f)).tanh() * c.real("alpha", .5f)};
}
variables import_parametric_softplus(node_context& c) {
  return {(c.in(0) * c.real("beta", 1) | op::softplus{}) * c.real("alpha", 1)};
}

// One bias a channel.
variables import_image_scaler(node_context& c) {
  const value x = c.in(0) * c.real("scale", 1);
  const auto bias = c.reals("bias");
  if (bias.empty()) return {x};
  return {x.add_along(
      1, c.build.constant<float>(dtype::f32, {static_cast<std::int64_t>(bias.size())}, bias).convert(x.type()))};
}

}  // namespace

value activated(const node_context& c, value x, std::string_view name, std::vector<attribute> attributes) {
  if (name.empty()) return x;
  const op_importer* newest = nullptr;
  for (const op_importer& o : activation_importers())
    if (o.domain.empty() && o.op_type == name) newest = &o;
  if (!newest) c.unsupported("activation '" + std::string(name) + "'");
  node own;
  own.op_type = name;
  own.attributes = std::move(attributes);
  node_context inner{c.build, own, newest->since, {variable(x)}, c.bodies};
  return newest->function(inner)[0].tensor;
}

std::span<const op_importer> activation_importers() {
  static constexpr op_importer table[] = {
      {"", "Affine", 1, import_affine, experimental},
      {"", "Celu", 12, import_celu},
      {"", "Elu", 1, import_elu},
      {"", "Gelu", 20, import_gelu},
      {"", "HardSigmoid", 1, import_hard_sigmoid},
      {"", "HardSwish", 14, import_unary<op::hard_swish>},
      {"", "Hardmax", 1, import_hardmax_1},
      {"", "Hardmax", 13, import_hardmax},
      {"", "ImageScaler", 1, import_image_scaler, experimental},
      {"", "LeakyRelu", 1, import_leaky_relu},
      {"", "LogSoftmax", 1, import_softmax_1<true>},
      {"", "LogSoftmax", 13, import_softmax<true>},
      {"", "Mish", 18, import_unary<op::mish>},
      {"", "PRelu", 1, import_prelu_1},
      {"", "PRelu", 7, import_binary<op::prelu>},
      {"", "ParametricSoftplus", 1, import_parametric_softplus, experimental},
      {"", "Relu", 1, import_unary<op::relu>},
      {"", "Scale", 1, import_scale, experimental},
      {"", "ScaledTanh", 1, import_scaled_tanh, experimental},
      {"", "Selu", 1, import_selu_1},
      {"", "Selu", 6, import_selu},
      {"", "Shrink", 9, import_shrink},
      {"", "Sigmoid", 1, import_unary<op::sigmoid>},
      {"", "Softmax", 1, import_softmax_1<false>},
      {"", "Softmax", 13, import_softmax<false>},
      {"", "Softplus", 1, import_unary<op::softplus>},
      {"", "Softsign", 1, import_unary<op::softsign>},
      {"", "Swish", 24, import_swish},
      {"", "Tanh", 1, import_unary<op::tanh>},
      {"", "ThresholdedRelu", 1, import_thresholded_relu},
      {microsoft, "BiasGelu", 1, import_bias_gelu},
      {microsoft, "FastGelu", 1, import_fast_gelu},
      {microsoft, "Gelu", 1, import_gelu},
      {microsoft, "QuickGelu", 1, import_quick_gelu},
  };
  return table;
}

}  // namespace kiln::onnx

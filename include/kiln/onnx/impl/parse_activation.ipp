#include "kiln/onnx/impl/parse.hpp"

namespace kiln::onnx {

namespace {

variables parse_celu(call& c) { return {c.build.add(op::celu{c.real("alpha", 1)}, c.in(0))}; }
variables parse_elu(call& c) { return {c.in(0).elu({c.real("alpha", 1)})}; }
variables parse_hard_sigmoid(call& c) {
  return {c.build.add(op::hard_sigmoid{c.real("alpha", 0.2f), c.real("beta", 0.5f)}, c.in(0))};
}
variables parse_leaky_relu(call& c) { return {c.in(0).leaky_relu({c.real("alpha", 0.01f)})}; }
variables parse_selu_1(call& c) {
  return {c.build.add(op::selu{c.real("alpha", 1.6732f), c.real("gamma", 1.0507f)}, c.in(0))};
}
variables parse_selu(call& c) {
  const op::selu otherwise;
  return {c.build.add(op::selu{c.real("alpha", otherwise.alpha), c.real("gamma", otherwise.gamma)}, c.in(0))};
}
variables parse_shrink(call& c) {
  // integers shrink too, in the float type that holds the attributes
  const value x = c.in(0);
  const value wide = is_float(x.type()) ? x : x.convert(dtype::f32);
  return {c.build.add(op::shrink{c.real("lambd", 0.5f), c.real("bias", 0)}, wide).convert(x.type())};
}
variables parse_swish(call& c) {
  const float alpha = c.real("alpha", 1);
  const value x = c.in(0);
  return {alpha == 1 ? x.silu() : x * (x * alpha).sigmoid()};
}
variables parse_thresholded_relu(call& c) { return {c.build.add(op::thresholded_relu{c.real("alpha", 1)}, c.in(0))}; }

variables parse_gelu(call& c) {
  const auto kind = c.text("approximate", "none");
  if (kind != "none" && kind != "tanh") c.malformed("approximate is none or tanh, not '" + std::string(kind) + "'");
  return {c.in(0).gelu({kind == "tanh"})};
}
variables parse_quick_gelu(call& c) {
  const value x = c.in(0);
  return {x * (x * c.real("alpha", 1.702f)).sigmoid()};
}
variables parse_fast_gelu(call& c) { return {(c.has(1) ? c.in(0) + c.in(1) : c.in(0)).gelu({true})}; }
variables parse_bias_gelu(call& c) { return {(c.in(0) + c.in(1)).gelu()}; }

// Before operator set 7 a slope of one dim runs along channels; afterwards it broadcasts as numpy does.
variables parse_prelu_1(call& c) {
  const value x = c.in(0), slope = c.in(1);
  const bool channels = slope.rank() == 1 && x.rank() > 1 && !(slope.dim(0) == dimension(1));
  return {c.build.add(op::prelu{}, x, channels ? x.make_along(1, slope) : slope)};
}

value softmax_over(value x, const ints& axes, bool logarithm) {
  const value shifted = x - x.reduce_max(axes);
  const value e = shifted.exp(), sum = e.reduce_sum(axes);
  return logarithm ? shifted - sum.log() : e / sum;
}
template <bool Logarithm>
variables parse_softmax(call& c) {
  const value x = c.in(0);
  return {softmax_over(x, {axis_within(c, c.integer("axis", -1), x.rank())}, Logarithm)};
}
// Before operator set 13 the input is a matrix: the axis and all behind it are one row.
// The first axis of the rows; behind the last one, each element is a row.
std::int64_t row_axis(const call& c) {
  const auto rank = static_cast<std::int64_t>(c.in(0).rank());
  const std::int64_t axis = c.integer("axis", 1);
  return axis == rank ? rank : axis_within(c, axis, c.in(0).rank());
}
template <bool Logarithm>
variables parse_softmax_1(call& c) {
  const value x = c.in(0);
  const std::int64_t axis = row_axis(c);
  if (static_cast<std::size_t>(axis) == x.rank())
    return {softmax_over(x.unsqueeze({axis}), {axis}, Logarithm).squeeze({axis})};
  return {softmax_over(x, axes_from(axis, x.rank()), Logarithm)};
}

value hardmax_along(call& c, value x, std::int64_t axis) {
  const dimension extent = x.dim(axis);
  const value best = c.build.add(op::arg_max{axis}, x);
  dims along(x.rank(), dimension(1));
  along[static_cast<std::size_t>(axis)] = extent;
  const value index = c.build.add(op::iota{along, axis, dtype::i64});
  return index.equal(best).convert(x.type());
}
variables parse_hardmax(call& c) {
  const value x = c.in(0);
  return {hardmax_along(c, x, axis_within(c, c.integer("axis", -1), x.rank()))};
}
variables parse_hardmax_1(call& c) {
  const value x = c.in(0);
  const value flat = x.flatten(row_axis(c));
  return {hardmax_along(c, flat, 1).reshape(x.get_shape().lens)};
}

// Experimental operators of the first operator sets, which models of that time still hold.
variables parse_affine(call& c) { return {c.in(0) * c.real("alpha", 1) + c.real("beta", 0)}; }
variables parse_scale(call& c) { return {c.in(0) * c.real("scale", 1)}; }
variables parse_scaled_tanh(call& c) { return {(c.in(0) * c.real("beta", .5f)).tanh() * c.real("alpha", .5f)}; }
variables parse_parametric_softplus(call& c) {
  return {(c.in(0) * c.real("beta", 1) | op::softplus{}) * c.real("alpha", 1)};
}

// One bias a channel.
variables parse_image_scaler(call& c) {
  const value x = c.in(0) * c.real("scale", 1);
  const auto bias = c.reals("bias");
  if (bias.empty()) return {x};
  return {x.add_along(
      1, c.build.constant<float>(dtype::f32, {static_cast<std::int64_t>(bias.size())}, bias).convert(x.type()))};
}

}  // namespace

std::span<const row> activation_rows() {
  static constexpr std::string_view experimental = "experimental, no longer in the standard";
  static constexpr row rows[] = {
      {"", "Affine", 1, parse_affine, experimental},
      {"", "Celu", 12, parse_celu},
      {"", "Elu", 1, parse_elu},
      {"", "Gelu", 20, parse_gelu},
      {"", "HardSigmoid", 1, parse_hard_sigmoid},
      {"", "HardSwish", 14, parse_unary<op::hard_swish>},
      {"", "Hardmax", 1, parse_hardmax_1},
      {"", "Hardmax", 13, parse_hardmax},
      {"", "ImageScaler", 1, parse_image_scaler, experimental},
      {"", "LeakyRelu", 1, parse_leaky_relu},
      {"", "LogSoftmax", 1, parse_softmax_1<true>},
      {"", "LogSoftmax", 13, parse_softmax<true>},
      {"", "Mish", 18, parse_unary<op::mish>},
      {"", "PRelu", 1, parse_prelu_1},
      {"", "PRelu", 7, parse_binary<op::prelu>},
      {"", "ParametricSoftplus", 1, parse_parametric_softplus, experimental},
      {"", "Relu", 1, parse_unary<op::relu>},
      {"", "Scale", 1, parse_scale, experimental},
      {"", "ScaledTanh", 1, parse_scaled_tanh, experimental},
      {"", "Selu", 1, parse_selu_1},
      {"", "Selu", 6, parse_selu},
      {"", "Shrink", 9, parse_shrink},
      {"", "Sigmoid", 1, parse_unary<op::sigmoid>},
      {"", "Softmax", 1, parse_softmax_1<false>},
      {"", "Softmax", 13, parse_softmax<false>},
      {"", "Softplus", 1, parse_unary<op::softplus>},
      {"", "Softsign", 1, parse_unary<op::softsign>},
      {"", "Swish", 24, parse_swish},
      {"", "Tanh", 1, parse_unary<op::tanh>},
      {"", "ThresholdedRelu", 1, parse_thresholded_relu},
      {microsoft, "BiasGelu", 1, parse_bias_gelu},
      {microsoft, "FastGelu", 1, parse_fast_gelu},
      {microsoft, "Gelu", 1, parse_gelu},
      {microsoft, "QuickGelu", 1, parse_quick_gelu},
  };
  return rows;
}

}  // namespace kiln::onnx

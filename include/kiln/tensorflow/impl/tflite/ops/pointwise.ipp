#include <cmath>

#include "kiln/tensorflow/impl/tflite/ops/common.hpp"

// Operators of each element.
namespace kiln::tensorflow {

namespace {

variables import_first(node_context& c) { return {c.in(0)}; }
// Integers are cut towards 0.
variables import_div(node_context& c) {
  return as_tensorflow(c, is_float(c.in(0).type()) ? "RealDiv" : "Div", c.inputs);
}
variables import_cast(node_context& c) {
  return as_tensorflow(c, "Cast", c.inputs, {number_attribute("DstT", c.integers("output_types")[0])});
}
variables import_leaky_relu(node_context& c) { return {c.in(0).leaky_relu({c.real("alpha", 0)})}; }
variables import_relu_n1(node_context& c) { return {activated(c, c.in(0), 2)}; }
variables import_relu_01(node_context& c) {
  const value x = c.in(0);
  return {c.build.add(op::clip{}, x, scalar_like(c, x, 0), scalar_like(c, x, 1))};
}
variables import_hard_swish(node_context& c) { return as_onnx(c, "HardSwish", {c.in(0)}); }
variables import_gelu(node_context& c) { return {c.in(0).gelu({c.flag("approximate")})}; }
variables import_bitcast(node_context& c) {
  return as_onnx(c, "BitCast", {c.in(0)}, {number_attribute("to", c.integers("output_types")[0])});
}

// Numbers on a grid of 2^bits steps from min to max, moved so that 0 is on it.
variables import_fake_quant(node_context& c) {
  const std::int64_t bits = c.integer("num_bits", 8);
  if (bits < 2 || bits > 16) c.malformed("num_bits is " + std::to_string(bits));
  const float low = c.real("min", 0), high = c.real("max", 0);
  if (!(low <= 0 && high >= 0 && low < high)) c.malformed("the range is of 0 and some numbers beside it");
  const float first = c.flag("narrow_range") ? 1 : 0, last = static_cast<float>((std::int64_t{1} << bits) - 1);
  const float scale = (high - low) / (last - first);
  const float zero = std::round(std::min(std::max(first - low / scale, first), last));
  const value x = c.in(0), step = scalar_like(c, x, scale);
  const auto bound = [&](float v) { return scalar_like(c, x, (v - zero) * scale); };
  const value kept = c.build.add(op::clip{}, x, bound(first), bound(last)) - bound(first);
  return {(kept / step + scalar_like(c, x, .5)).floor() * step + bound(first)};
}

// How many boundaries are not above the element.
variables import_bucketize(node_context& c) {
  const auto bounds = c.reals("boundaries");
  value sum = c.build.scalar(dtype::i32, 0).broadcast_to(lens_of(c.in(0)));
  if (bounds.empty()) return {sum};
  if (bounds.size() > 4096) c.unsupported("it has " + std::to_string(bounds.size()) + " boundaries");
  const value all = c.build.constant(dtype::f32, {static_cast<std::int64_t>(bounds.size())}, bounds);
  const auto rank = static_cast<std::int64_t>(c.in(0).rank());
  const value x = c.in(0).convert(dtype::f32).unsqueeze({rank});
  return {onnx::not_less(x, all).convert(dtype::i32).reduce_sum({rank}).squeeze({rank})};
}

}  // namespace

tflite_table tflite_pointwise_operators() {
  static constexpr tflite_operator table[] = {
      {"ABS", nullptr, "Abs"},
      {"ADD", nullptr, "AddV2"},
      {"ADD_N", nullptr, "AddN"},
      {"ATAN2", nullptr, "Atan2"},
      {"BITCAST", import_bitcast},
      {"BITWISE_XOR", nullptr, "BitwiseXor"},
      {"BUCKETIZE", import_bucketize},
      {"CAST", import_cast},
      {"CEIL", nullptr, "Ceil"},
      {"COS", nullptr, "Cos"},
      {"DEQUANTIZE", import_first},
      {"DIV", import_div},
      {"ELU", nullptr, "Elu"},
      {"EQUAL", nullptr, "Equal"},
      {"EXP", nullptr, "Exp"},
      {"FAKE_QUANT", import_fake_quant},
      {"FLOOR", nullptr, "Floor"},
      {"FLOOR_DIV", nullptr, "FloorDiv"},
      {"FLOOR_MOD", nullptr, "FloorMod"},
      {"GELU", import_gelu},
      {"GREATER", nullptr, "Greater"},
      {"GREATER_EQUAL", nullptr, "GreaterEqual"},
      {"HARD_SWISH", import_hard_swish},
      {"LEAKY_RELU", import_leaky_relu},
      {"LESS", nullptr, "Less"},
      {"LESS_EQUAL", nullptr, "LessEqual"},
      {"LOG", nullptr, "Log"},
      {"LOGICAL_AND", nullptr, "LogicalAnd"},
      {"LOGICAL_NOT", nullptr, "LogicalNot"},
      {"LOGICAL_OR", nullptr, "LogicalOr"},
      {"LOGISTIC", nullptr, "Sigmoid"},
      {"MAXIMUM", nullptr, "Maximum"},
      {"MINIMUM", nullptr, "Minimum"},
      {"MUL", nullptr, "Mul"},
      {"NEG", nullptr, "Neg"},
      {"NOT_EQUAL", nullptr, "NotEqual"},
      {"POW", nullptr, "Pow"},
      {"PRELU", nullptr, "Prelu"},
      {"QUANTIZE", import_first},
      {"RELU", nullptr, "Relu"},
      {"RELU6", nullptr, "Relu6"},
      {"RELU_0_TO_1", import_relu_01},
      {"RELU_N1_TO_1", import_relu_n1},
      {"RIGHT_SHIFT", nullptr, "RightShift"},
      {"ROUND", nullptr, "Round"},
      {"RSQRT", nullptr, "Rsqrt"},
      {"SELECT", nullptr, "Select"},
      {"SELECT_V2", nullptr, "SelectV2"},
      {"SIGN", nullptr, "Sign"},
      {"SIN", nullptr, "Sin"},
      {"SQRT", nullptr, "Sqrt"},
      {"SQUARE", nullptr, "Square"},
      {"SQUARED_DIFFERENCE", nullptr, "SquaredDifference"},
      {"SUB", nullptr, "Sub"},
      {"TANH", nullptr, "Tanh"},
      {"ZEROS_LIKE", nullptr, "ZerosLike"},
  };
  return table;
}

}  // namespace kiln::tensorflow

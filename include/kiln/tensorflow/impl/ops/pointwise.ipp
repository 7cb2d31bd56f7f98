#include <cmath>

#include "kiln/tensorflow/impl/ops/common.hpp"

// Operators of each element.
namespace kiln::tensorflow {

namespace {

value one(const node_context& c, value x, float v) { return c.build.scalar(x.type(), v); }

variables import_same(node_context& c) {
  variables out;
  for (std::size_t i = 0; i < c.size(); ++i) out.push_back(c.inputs[i]);
  return out;
}
variables import_first(node_context& c) { return {c.in(0)}; }

variables import_add_n(node_context& c) {
  value sum = c.in(0);
  for (std::size_t i = 1; i < c.size(); ++i) {
    const dims own = c.in(i).get_shape().lens, lens = sum.get_shape().lens;
    bool agrees = own.size() == lens.size(), is_known = agrees;
    for (std::size_t d = 0; agrees && d < own.size(); ++d) {
      const auto equal = same(own[d], lens[d]);
      agrees = equal.value_or(true);
      is_known = is_known && equal;
    }
    if (!agrees) c.malformed("the summands have one shape");
    sum = sum + (is_known ? c.in(i) : c.in(i).expect_dims(lens));
  }
  return {sum};
}

// Rounded towards minus infinity, as is the remainder's sign that of the divisor.
variables import_floor_div(node_context& c) {
  const value a = c.in(0), b = c.in(1), quotient = a / b;
  if (is_float(a.type())) return {quotient.floor()};
  const auto is_symbolic = [&](std::size_t i) { return c.constant(i) && c.constant(i)->has_symbols(); };
  if (!is_signed_integer(a.type()) || is_symbolic(0) || is_symbolic(1)) return {quotient};  // extents are not negative
  const value rest = c.build.add(op::fmod{}, a, b), zero = one(c, a, 0);
  const value differs = c.build.add(op::logical_xor{}, rest < zero, b < zero);
  return {quotient - onnx::both(rest.equal(zero).logical_not(), differs).convert(a.type())};
}
variables import_truncate_div(node_context& c) {
  const value quotient = c.in(0) / c.in(1);
  if (!is_float(quotient.type())) return {quotient};
  return {(quotient < one(c, quotient, 0)).where(quotient.ceil(), quotient.floor())};
}
// An integer is round.
variables import_round(node_context& c) { return {is_float(c.in(0).type()) ? c.in(0) | op::round{} : c.in(0)}; }
variables import_floor_mod(node_context& c) {
  const value a = c.in(0), b = c.in(1);
  if (!is_float(a.type())) return {c.build.add(op::mod{}, a, b)};
  const value rest = c.build.add(op::fmod{}, a, b), zero = one(c, a, 0);
  const value differs = c.build.add(op::logical_xor{}, rest < zero, b < zero);
  const value wrong = onnx::both(rest.equal(zero).logical_not(), differs);
  return {wrong.where(rest + b, rest)};
}
variables import_div_no_nan(node_context& c) {
  const value a = c.in(0), b = c.in(1), none = b.equal(one(c, b, 0));
  return {none.where(one(c, a, 0), a / none.where(one(c, b, 1), b))};
}
// 0 where the first operand is 0, whatever the second one gives.
template <class Apply> variables no_nan(node_context& c, Apply&& apply) {
  const value a = c.in(0), b = c.in(1);
  return {a.equal(one(c, a, 0)).where(one(c, a, 0), apply(a, b))};
}
variables import_xlogy(node_context& c) {
  return no_nan(c, [](value a, value b) { return a * b.log(); });
}
variables import_xdivy(node_context& c) {
  return no_nan(c, [](value a, value b) { return a / b; });
}
variables import_mul_no_nan(node_context& c) {
  const value a = c.in(0), b = c.in(1);
  return {b.equal(one(c, b, 0)).where(one(c, b, 0), a * b)};
}

variables import_square(node_context& c) { return {c.in(0) * c.in(0)}; }
variables import_erfc(node_context& c) { return {one(c, c.in(0), 1) - c.in(0).erf()}; }
variables import_relu6(node_context& c) {
  const value x = c.in(0);
  return {c.build.add(op::clip{}, x, one(c, x, 0), one(c, x, 6))};
}
variables import_prelu(node_context& c) {
  const value x = c.in(0);
  return {(x < one(c, x, 0)).where(x * c.in(1), x)};
}
variables import_leaky_relu(node_context& c) { return {c.in(0).leaky_relu({c.real("alpha", .2f)})}; }
variables import_elu(node_context& c) { return {c.in(0).elu()}; }
variables import_softsign(node_context& c) { return {c.in(0) | op::softsign{}}; }
variables import_clip(node_context& c) { return {c.in(0).min(c.in(2)).max(c.in(1))}; }

variables import_not_equal(node_context& c) { return {onnx::equal_elements(c.in(0), c.in(1)).logical_not()}; }
variables import_equal(node_context& c) { return {onnx::equal_elements(c.in(0), c.in(1))}; }
variables import_is_finite(node_context& c) {
  const value x = c.in(0);
  return {onnx::either(x | op::is_nan{}, x | op::is_inf{}).logical_not()};
}

variables import_select(node_context& c) { return {onnx::selected(c.in(0), c.in(1), c.in(2))}; }
// The condition may be a vector that chooses among the rows.
variables import_select_1(node_context& c) {
  value condition = c.in(0);
  const std::size_t rank = c.in(1).rank();
  if (condition.rank() == 1 && rank > 1) condition = condition.unsqueeze(axes_from(1, rank));
  return {onnx::selected(condition, c.in(1), c.in(2))};
}

// Whether x has a sign; that of a zero is its reciprocal's.
value is_negative(const node_context& c, value x) {
  const value zero = one(c, x, 0);
  return onnx::either(x < zero, c.build.add(op::recip{}, x) < zero);
}
// The angle of (x, y): that of the magnitudes, mirrored at the axes. Equal ones have no quotient where both are 0 or
// both are infinite.
variables import_atan2(node_context& c) {
  const value y = c.in(0), x = c.in(1), zero = one(c, x, 0);
  const value height = y.abs(), width = x.abs();
  const value diagonal = height.equal(zero).where(zero, one(c, x, 1));
  const value steep = c.build.add(op::atan{}, height.equal(width).where(diagonal, height / width));
  const value above = is_negative(c, x).where(c.build.scalar(x.type(), M_PI) - steep, steep);
  return {is_negative(c, y).where(c.build.add(op::neg{}, above), above)};
}

// A float that an integer does not hold is cut towards zero.
variables import_cast(node_context& c) {
  require(c, "DstT");
  if (c.integer("DstT", 0) == 0) c.unsupported("casts to " + c.find("DstT")->text);
  return as_onnx(c, "Cast", {c.in(0)}, {number_attribute("to", c.integer("DstT", 0))});
}

}  // namespace

op_importer_table pointwise_importers() {
  static constexpr op_importer table[] = {
      {domain, "Abs", 1, import_unary<op::abs>},
      {domain, "Acos", 1, import_unary<op::acos>},
      {domain, "Acosh", 1, import_unary<op::acosh>},
      {domain, "Add", 1, import_binary<op::add>},
      {domain, "AddN", 1, import_add_n},
      {domain, "AddV2", 1, import_binary<op::add>},
      {domain, "Asin", 1, import_unary<op::asin>},
      {domain, "Asinh", 1, import_unary<op::asinh>},
      {domain, "Atan", 1, import_unary<op::atan>},
      {domain, "Atan2", 1, import_atan2},
      {domain, "Atanh", 1, import_unary<op::atanh>},
      {domain, "BitwiseAnd", 1, import_binary<op::bitwise_and>},
      {domain, "BitwiseOr", 1, import_binary<op::bitwise_or>},
      {domain, "BitwiseXor", 1, import_binary<op::bitwise_xor>},
      {domain, "Cast", 1, import_cast},
      {domain, "Ceil", 1, import_unary<op::ceil>},
      {domain, "CheckNumerics", 1, import_first},
      {domain, "ClipByValue", 1, import_clip},
      {domain, "Cos", 1, import_unary<op::cos>},
      {domain, "Cosh", 1, import_unary<op::cosh>},
      {domain, "Div", 1, import_binary<op::div>},
      {domain, "DivNoNan", 1, import_div_no_nan},
      {domain, "Elu", 1, import_elu},
      {domain, "Equal", 1, import_equal},
      {domain, "Erf", 1, import_unary<op::erf>},
      {domain, "Erfc", 1, import_erfc, "1 - erf"},
      {domain, "Exp", 1, import_unary<op::exp>},
      {domain, "Expm1", 1, import_unary<op::expm1>},
      {domain, "Floor", 1, import_unary<op::floor>},
      {domain, "FloorDiv", 1, import_floor_div},
      {domain, "FloorMod", 1, import_floor_mod},
      {domain, "Greater", 1, import_binary<op::greater>},
      {domain, "GreaterEqual", 1, import_binary<op::greater_or_equal>},
      {domain, "Identity", 1, import_first},
      {domain, "IdentityN", 1, import_same},
      {domain, "Inv", 1, import_unary<op::recip>},
      {domain, "Invert", 1, import_unary<op::bitwise_not>},
      {domain, "IsFinite", 1, import_is_finite},
      {domain, "IsInf", 1, import_unary<op::is_inf>},
      {domain, "IsNan", 1, import_unary<op::is_nan>},
      {domain, "LeakyRelu", 1, import_leaky_relu},
      {domain, "LeftShift", 1, import_binary<op::shift_left>},
      {domain, "Less", 1, import_binary<op::less>},
      {domain, "LessEqual", 1, import_binary<op::less_or_equal>},
      {domain, "Log", 1, import_unary<op::log>},
      {domain, "Log1p", 1, import_unary<op::log1p>},
      {domain, "LogicalAnd", 1, import_binary<op::logical_and>},
      {domain, "LogicalNot", 1, import_unary<op::logical_not>},
      {domain, "LogicalOr", 1, import_binary<op::logical_or>},
      {domain, "Maximum", 1, import_binary<op::max>},
      {domain, "Minimum", 1, import_binary<op::min>},
      {domain, "Mod", 1, import_binary<op::fmod>},
      {domain, "Mul", 1, import_binary<op::mul>},
      {domain, "MulNoNan", 1, import_mul_no_nan},
      {domain, "Neg", 1, import_unary<op::neg>},
      {domain, "NotEqual", 1, import_not_equal},
      {domain, "PlaceholderWithDefault", 1, import_first, "the default is the value"},
      {domain, "Pow", 1, import_binary<op::pow>},
      {domain, "Prelu", 1, import_prelu, "of tfjs"},
      {domain, "PreventGradient", 1, import_first},
      {domain, "RealDiv", 1, import_binary<op::div>},
      {domain, "Reciprocal", 1, import_unary<op::recip>},
      {domain, "Relu", 1, import_unary<op::relu>},
      {domain, "Relu6", 1, import_relu6},
      {domain, "RightShift", 1, import_binary<op::shift_right>},
      {domain, "Rint", 1, import_round},
      {domain, "Round", 1, import_round},
      {domain, "Rsqrt", 1, import_unary<op::rsqrt>},
      {domain, "Select", 1, import_select_1},
      {domain, "SelectV2", 1, import_select},
      {domain, "Selu", 1, import_unary<op::selu>},
      {domain, "Sigmoid", 1, import_unary<op::sigmoid>},
      {domain, "Sign", 1, import_unary<op::sign>},
      {domain, "Sin", 1, import_unary<op::sin>},
      {domain, "Sinh", 1, import_unary<op::sinh>},
      {domain, "Snapshot", 1, import_first},
      {domain, "Softplus", 1, import_unary<op::softplus>},
      {domain, "Softsign", 1, import_softsign},
      {domain, "Sqrt", 1, import_unary<op::sqrt>},
      {domain, "Square", 1, import_square},
      {domain, "SquaredDifference", 1, import_binary<op::square_difference>},
      {domain, "StopGradient", 1, import_first},
      {domain, "Sub", 1, import_binary<op::sub>},
      {domain, "Tan", 1, import_unary<op::tan>},
      {domain, "Tanh", 1, import_unary<op::tanh>},
      {domain, "TruncateDiv", 1, import_truncate_div},
      {domain, "TruncateMod", 1, import_binary<op::fmod>},
      {domain, "Xdivy", 1, import_xdivy},
      {domain, "Xlogy", 1, import_xlogy},
  };
  return table;
}

}  // namespace kiln::tensorflow

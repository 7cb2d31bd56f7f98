#include "kiln/onnx/impl/parse.hpp"

// Operators that are one op of the IR, element by element.
namespace kiln::onnx {

namespace {

// Tests of an element's kind, which a narrow float keeps when it is widened.
value testable(value x) { return is_float(x.type()) && is_narrow(x.type()) ? x.convert(dtype::f32) : x; }
variables parse_is_inf(call& c) {
  return {c.build.add(op::is_inf{c.flag("detect_negative", true), c.flag("detect_positive", true)}, testable(c.in(0)))};
}
variables parse_is_nan(call& c) { return {testable(c.in(0)) | op::is_nan{}}; }

variables parse_bit_shift(call& c) {
  const auto direction = c.text("direction", "");
  if (direction == "LEFT") return parse_binary<op::shift_left>(c);
  if (direction == "RIGHT") return parse_binary<op::shift_right>(c);
  c.malformed("direction is LEFT or RIGHT, not '" + std::string(direction) + "'");
}

variables parse_mod(call& c) { return c.flag("fmod") ? parse_binary<op::fmod>(c) : parse_binary<op::mod>(c); }

variables parse_erf(call& c) { return {(as_real(c.in(0)) | op::erf{}).convert(c.in(0).type())}; }

variables parse_where(call& c) { return {selected(c.in(0), c.in(1), c.in(2))}; }

variables parse_equal(call& c) { return {equal_elements(c.in(0), c.in(1))}; }

}  // namespace

std::span<const row> pointwise_rows() {
  static constexpr row rows[] = {
      {"", "Abs", 1, parse_unary<op::abs>},
      {"", "Acos", 7, parse_unary<op::acos>},
      {"", "Acosh", 9, parse_unary<op::acosh>},
      {"", "Add", 1, parse_binary_1<op::add>},
      {"", "Add", 7, parse_binary<op::add>},
      {"", "And", 1, parse_binary_1<op::logical_and>},
      {"", "And", 7, parse_binary<op::logical_and>},
      {"", "Asin", 7, parse_unary<op::asin>},
      {"", "Asinh", 9, parse_unary<op::asinh>},
      {"", "Atan", 7, parse_unary<op::atan>},
      {"", "Atanh", 9, parse_unary<op::atanh>},
      {"", "BitShift", 11, parse_bit_shift},
      {"", "BitwiseAnd", 18, parse_binary<op::bitwise_and>},
      {"", "BitwiseNot", 18, parse_unary<op::bitwise_not>},
      {"", "BitwiseOr", 18, parse_binary<op::bitwise_or>},
      {"", "BitwiseXor", 18, parse_binary<op::bitwise_xor>},
      {"", "Ceil", 1, parse_unary<op::ceil>},
      {"", "Cos", 7, parse_unary<op::cos>},
      {"", "Cosh", 9, parse_unary<op::cosh>},
      {"", "Div", 1, parse_binary_1<op::div>},
      {"", "Div", 7, parse_binary<op::div>},
      {"", "Equal", 1, parse_binary_1<op::equal>},
      {"", "Equal", 7, parse_equal},
      {"", "Erf", 9, parse_erf},
      {"", "Exp", 1, parse_unary<op::exp>},
      {"", "Floor", 1, parse_unary<op::floor>},
      {"", "Greater", 1, parse_binary_1<op::greater>},
      {"", "Greater", 7, parse_binary<op::greater>},
      {"", "GreaterOrEqual", 12, parse_binary<op::greater_or_equal>},
      {"", "IsInf", 10, parse_is_inf},
      {"", "IsNaN", 9, parse_is_nan},
      {"", "Less", 1, parse_binary_1<op::less>},
      {"", "Less", 7, parse_binary<op::less>},
      {"", "LessOrEqual", 12, parse_binary<op::less_or_equal>},
      {"", "Log", 1, parse_unary<op::log>},
      {"", "Mod", 10, parse_mod},
      {"", "Mul", 1, parse_binary_1<op::mul>},
      {"", "Mul", 7, parse_binary<op::mul>},
      {"", "Neg", 1, parse_unary<op::neg>},
      {"", "Not", 1, parse_unary<op::logical_not>},
      {"", "Or", 1, parse_binary_1<op::logical_or>},
      {"", "Or", 7, parse_binary<op::logical_or>},
      {"", "Reciprocal", 1, parse_unary<op::recip>},
      {"", "Round", 11, parse_unary<op::round>},
      {"", "Sign", 9, parse_unary<op::sign>},
      {"", "Sin", 7, parse_unary<op::sin>},
      {"", "Sinh", 9, parse_unary<op::sinh>},
      {"", "Sqrt", 1, parse_unary<op::sqrt>},
      {"", "Sub", 1, parse_binary_1<op::sub>},
      {"", "Sub", 7, parse_binary<op::sub>},
      {"", "Tan", 7, parse_unary<op::tan>},
      {"", "Where", 9, parse_where},
      {"", "Xor", 1, parse_binary_1<op::logical_xor>},
      {"", "Xor", 7, parse_binary<op::logical_xor>},
  };
  return rows;
}

}  // namespace kiln::onnx

#include "kiln/onnx/impl/ops/common.hpp"

// Elementwise operators that are one op of the IR.
namespace kiln::onnx {

namespace {

// Narrow floats as f32, which keeps infinities and NaN.
value testable(value x) { return is_float(x.type()) && is_narrow(x.type()) ? x.convert(dtype::f32) : x; }
variables import_is_inf(node_context& c) {
  return {c.build.add(op::is_inf{c.flag("detect_negative", true), c.flag("detect_positive", true)}, testable(c.in(0)))};
}
variables import_is_nan(node_context& c) { return {testable(c.in(0)) | op::is_nan{}}; }

variables import_bit_shift(node_context& c) {
  if (!c.find("direction")) c.malformed("attribute 'direction' is missing");
  return c.choice("direction", {"LEFT", "RIGHT"}) == "LEFT" ? import_binary<op::shift_left>(c)
                                                            : import_binary<op::shift_right>(c);
}

variables import_mod(node_context& c) {
  return c.flag("fmod") ? import_binary<op::fmod>(c) : import_binary<op::mod>(c);
}

variables import_erf(node_context& c) { return {(as_real(c.in(0)) | op::erf{}).convert(c.in(0).type())}; }

variables import_where(node_context& c) { return {selected(c.in(0), c.in(1), c.in(2))}; }

variables import_equal(node_context& c) { return {equal_elements(c.in(0), c.in(1))}; }

}  // namespace

std::span<const op_importer> pointwise_importers() {
  static constexpr op_importer table[] = {
      {"", "Abs", 1, import_unary<op::abs>},
      {"", "Acos", 7, import_unary<op::acos>},
      {"", "Acosh", 9, import_unary<op::acosh>},
      {"", "Add", 1, import_binary_1<op::add>},
      {"", "Add", 7, import_binary<op::add>},
      {"", "And", 1, import_binary_1<op::logical_and>},
      {"", "And", 7, import_binary<op::logical_and>},
      {"", "Asin", 7, import_unary<op::asin>},
      {"", "Asinh", 9, import_unary<op::asinh>},
      {"", "Atan", 7, import_unary<op::atan>},
      {"", "Atanh", 9, import_unary<op::atanh>},
      {"", "BitShift", 11, import_bit_shift},
      {"", "BitwiseAnd", 18, import_binary<op::bitwise_and>},
      {"", "BitwiseNot", 18, import_unary<op::bitwise_not>},
      {"", "BitwiseOr", 18, import_binary<op::bitwise_or>},
      {"", "BitwiseXor", 18, import_binary<op::bitwise_xor>},
      {"", "Ceil", 1, import_unary<op::ceil>},
      {"", "Cos", 7, import_unary<op::cos>},
      {"", "Cosh", 9, import_unary<op::cosh>},
      {"", "Div", 1, import_binary_1<op::div>},
      {"", "Div", 7, import_binary<op::div>},
      {"", "Equal", 1, import_binary_1<op::equal>},
      {"", "Equal", 7, import_equal},
      {"", "Erf", 9, import_erf},
      {"", "Exp", 1, import_unary<op::exp>},
      {"", "Floor", 1, import_unary<op::floor>},
      {"", "Greater", 1, import_binary_1<op::greater>},
      {"", "Greater", 7, import_binary<op::greater>},
      {"", "GreaterOrEqual", 12, import_binary<op::greater_or_equal>},
      {"", "IsInf", 10, import_is_inf},
      {"", "IsNaN", 9, import_is_nan},
      {"", "Less", 1, import_binary_1<op::less>},
      {"", "Less", 7, import_binary<op::less>},
      {"", "LessOrEqual", 12, import_binary<op::less_or_equal>},
      {"", "Log", 1, import_unary<op::log>},
      {"", "Mod", 10, import_mod},
      {"", "Mul", 1, import_binary_1<op::mul>},
      {"", "Mul", 7, import_binary<op::mul>},
      {"", "Neg", 1, import_unary<op::neg>},
      {"", "Not", 1, import_unary<op::logical_not>},
      {"", "Or", 1, import_binary_1<op::logical_or>},
      {"", "Or", 7, import_binary<op::logical_or>},
      {"", "Reciprocal", 1, import_unary<op::recip>},
      {"", "Round", 11, import_unary<op::round>},
      {"", "Sign", 9, import_unary<op::sign>},
      {"", "Sin", 7, import_unary<op::sin>},
      {"", "Sinh", 9, import_unary<op::sinh>},
      {"", "Sqrt", 1, import_unary<op::sqrt>},
      {"", "Sub", 1, import_binary_1<op::sub>},
      {"", "Sub", 7, import_binary<op::sub>},
      {"", "Tan", 7, import_unary<op::tan>},
      {"", "Where", 9, import_where},
      {"", "Xor", 1, import_binary_1<op::logical_xor>},
      {"", "Xor", 7, import_binary<op::logical_xor>},
  };
  return table;
}

}  // namespace kiln::onnx

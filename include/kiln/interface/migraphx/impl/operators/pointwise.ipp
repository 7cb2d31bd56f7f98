#include "kiln/interface/migraphx/impl/operators/lowering.hpp"

// Operators of one element from each operand. Operands have the same extents; nothing is broadcast.
namespace kiln::migraphx {

namespace {

value_list add_convert(lowering& c) {
  c.expect(1);
  return {c.in(0).convert(c.type("target_type"))};
}

value_list add_where(lowering& c) {
  c.expect(3);
  c.expect_same_lens();
  c.expect_same_type(1);
  return {c.build.add(op::where{}, c.in(0).convert(dtype::boolean), c.in(1), c.in(2))};
}

value_list add_log2(lowering& c) {
  c.expect(1);
  return {c.in(0).log() * 1.4426950408889634};
}

value_list add_clip(lowering& c) {
  c.expect(3);
  c.expect_same_lens();
  c.expect_same_type();
  return {c.build.add(op::clip{}, c.in(0), c.in(1), c.in(2))};
}

// MIGraphX's logical operators take any type and give the same one.
template <class Op> value_list add_logical(lowering& c) {
  c.expect(2);
  c.expect_same_lens();
  const dtype t = c.in(0).type();
  return {c.build.add(Op{}, c.in(0).convert(dtype::boolean), c.in(1).convert(dtype::boolean)).convert(t)};
}
value_list add_not(lowering& c) {
  c.expect(1);
  return {c.in(0).convert(dtype::boolean).logical_not().convert(c.in(0).type())};
}
// MIGraphX's comparisons give 0 or 1 in the type of what they compare.
template <class Op> value_list add_comparison(lowering& c) { return {add_binary<Op>(c)[0].convert(c.in(0).type())}; }

value_list add_sqdiff(lowering& c) {
  c.expect(2);
  c.expect_same_lens();
  c.expect_same_type();
  const value d = c.in(0) - c.in(1);
  return {d * d};
}

}  // namespace

operator_table pointwise_operators() {
  static constexpr operator_row table[] = {
      {"abs", "", add_unary<op::abs>},
      {"acos", "", add_unary<op::acos>},
      {"acosh", "", add_unary<op::acosh>},
      {"add", "", add_binary<op::add>},
      {"asin", "", add_unary<op::asin>},
      {"asinh", "", add_unary<op::asinh>},
      {"atan", "", add_unary<op::atan>},
      {"atanh", "", add_unary<op::atanh>},
      {"bitwise_and", "", add_binary<op::bitwise_and>},
      {"ceil", "", add_unary<op::ceil>},
      {"clip", "", add_clip},
      {"convert", "target_type: half_type", add_convert},
      {"cos", "", add_unary<op::cos>},
      {"cosh", "", add_unary<op::cosh>},
      {"div", "", add_binary<op::div>},
      {"equal", "", add_comparison<op::equal>},
      {"erf", "", add_unary<op::erf>},
      {"exp", "", add_unary<op::exp>},
      {"floor", "", add_unary<op::floor>},
      {"fmod", "", add_binary<op::fmod>},
      {"greater", "", add_comparison<op::greater>},
      {"identity", "", add_unary<op::identity>},
      {"isinf", "", add_unary<op::is_inf>},
      {"isnan", "", add_unary<op::is_nan>},
      {"less", "", add_comparison<op::less>},
      {"log", "", add_unary<op::log>},
      {"log2", "", add_log2},
      {"logical_and", "", add_logical<op::logical_and>},
      {"logical_or", "", add_logical<op::logical_or>},
      {"logical_xor", "", add_logical<op::logical_xor>},
      {"max", "", add_binary<op::max>},
      {"min", "", add_binary<op::min>},
      {"mod", "", add_binary<op::mod>},
      {"mul", "", add_binary<op::mul>},
      {"nearbyint", "", add_unary<op::round>},
      {"neg", "", add_unary<op::neg>},
      {"not", "", add_not},
      {"pow", "", add_binary<op::pow>},
      {"prelu", "", add_binary<op::prelu>},
      {"recip", "", add_unary<op::recip>},
      {"rsqrt", "", add_unary<op::rsqrt>},
      {"sign", "", add_unary<op::sign>},
      {"sin", "", add_unary<op::sin>},
      {"sinh", "", add_unary<op::sinh>},
      {"sqdiff", "", add_sqdiff},
      {"sqrt", "", add_unary<op::sqrt>},
      {"sub", "", add_binary<op::sub>},
      {"tan", "", add_unary<op::tan>},
      {"tanh", "", add_unary<op::tanh>},
      {"where", "", add_where},
  };
  return table;
}

}  // namespace kiln::migraphx

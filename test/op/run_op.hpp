#pragma once
#include <type_traits>

#include "kiln/core/argument.hpp"
#include "kiln/op/ops.hpp"

/// One op on its own, in constant evaluation and at run time.
namespace kiln::test {

/// A literal from its row-major values: lit(dtype::f32, {2, 2}, 1, 2, 3, 4.5). Without a value: an empty tensor.
template <class... V> constexpr literal lit(dtype t, const dims& lens, V... values) {
  if constexpr (sizeof...(V) == 0) {
    return literal::of<float>(shape{t, lens}, {});
  } else {
    const std::common_type_t<V...> list[] = {static_cast<std::common_type_t<V...>>(values)...};
    return literal::of<std::common_type_t<V...>>(shape{t, lens}, list);
  }
}
/// f32 values.
template <class... V> constexpr literal f32(const dims& lens, V... values) { return lit(dtype::f32, lens, values...); }
/// i64 values.
template <class... V> constexpr literal i64(const dims& lens, V... values) { return lit(dtype::i64, lens, values...); }
/// Symbolic shape arithmetic: a vector of dimensions.
template <class... V> literal symbols(V... values) {
  small_vector<dimension> list;
  (list.push_back(values), ...);
  const dims lens{list.size()};  // before the list is moved from
  return literal::of_dimensions(lens, std::move(list));
}

/// The shape rule on shapes given one by one.
template <class Op, class... S> constexpr result<shapes> rule(const Op& op, const S&... in) {
  small_vector<shape> list;
  (list.push_back(in), ...);
  return shape_of(op, std::span<const shape>(list.data(), list.size()));
}
/// The only result's shape.
template <class Op, class... S> constexpr shape shape_from(const Op& op, const S&... in) {
  return rule(op, in...).value()[0];
}
/// Whether the shape rule fails with this code and rule text.
template <class Op, class... S> constexpr bool fails(const Op& op, errc code, std::string_view text, const S&... in) {
  const auto out = rule(op, in...);
  return !out && out.why().code == code && out.why().rule.view() == text;
}

/// Every result of the reference computation over literals; symbolic where an operand is.
template <class Op, class... L> constexpr small_vector<literal> run_all(const Op& op, const L&... in) {
  small_vector<literal> operands;
  (operands.push_back(in), ...);
  small_vector<shape> types;
  small_vector<evaluation::operand> inputs, outputs;
  bool symbolic = false;
  for (const literal& l : operands) {
    types.push_back(l.get_shape());
    inputs.push_back({l.get_shape(), &l, nullptr});
    symbolic = symbolic || l.has_symbols();
  }
  const auto results = shape_of(op, std::span<const shape>(types.data(), types.size())).value();
  for (const shape& s : results) outputs.push_back({s, nullptr, nullptr});
  evaluation e(inputs, outputs);
  evaluate(op, e, symbolic);
  return e.literals();
}
/// The first result.
template <class Op, class... L> constexpr literal run(const Op& op, const L&... in) { return run_all(op, in...)[0]; }

/// The first result of the run-time path: operands and results are bytes.
template <class Op, class... L> literal run_bytes(const Op& op, const L&... in) {
  small_vector<argument> operands;
  (operands.push_back(argument(in)), ...);
  small_vector<shape> types;
  small_vector<evaluation::operand> inputs, outputs;
  for (argument& a : operands) {
    types.push_back(a.get_shape());
    inputs.push_back({a.get_shape(), nullptr, a.data()});
  }
  const auto results = shape_of(op, std::span<const shape>(types.data(), types.size())).value();
  small_vector<argument> filled;
  for (const shape& s : results) filled.push_back(argument(s));
  for (argument& a : filled) outputs.push_back({a.get_shape(), nullptr, a.data()});
  evaluation e(inputs, outputs);
  evaluate(op, e);
  e.finish();
  return filled[0].to_literal();
}

/// The first result of a built-in op's compiled table, on bytes, or symbolically where an operand holds symbols.
inline literal run_table(const op_table& op, const void* attributes, const small_vector<literal>& in) {
  small_vector<shape> types;
  small_vector<argument> operands, filled;
  small_vector<evaluation::operand> inputs, outputs;
  bool symbolic = false;
  for (const literal& l : in) {
    types.push_back(l.get_shape());
    symbolic = symbolic || l.has_symbols();
  }
  const auto results = op.shape_rule(attributes, types).value();
  for (const literal& l : in) {
    if (!symbolic) operands.push_back(argument(l));
    inputs.push_back({l.get_shape(), &l, symbolic ? nullptr : operands.back().data()});
  }
  for (const shape& s : results) {
    if (!symbolic) filled.push_back(argument(s));
    outputs.push_back({s, nullptr, symbolic ? nullptr : filled.back().data()});
  }
  evaluation e(inputs, outputs);
  op.evaluate(attributes, e, symbolic);
  if (symbolic) return e.literals()[0];
  e.finish();
  return filled[0].to_literal();
}
template <class Op, class... L> literal compiled(const Op& op, const L&... in) {
  small_vector<literal> operands;
  (operands.push_back(in), ...);
  return run_table(*detail::find_built_in(type_name<Op>()), &op, operands);
}

}  // namespace kiln::test

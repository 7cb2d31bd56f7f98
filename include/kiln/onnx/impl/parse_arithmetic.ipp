#include "kiln/onnx/impl/parse.hpp"

// Elementwise operators that need a decision: variadic ones, bounds, powers.
namespace kiln::onnx {

namespace {

template <class Op>
value fold_inputs(call& c) {
  value all = c.in(0);
  for (std::size_t i = 1; i < c.size(); ++i) all = c.build.add(Op{}, all, c.in(i));
  return all;
}
template <class Op>
variables parse_variadic(call& c) {
  return {fold_inputs<Op>(c)};
}
variables parse_mean(call& c) { return {fold_inputs<op::add>(c) / static_cast<float>(c.size())}; }

value clip_between(call& c, value x, value low, value high) {
  if (low && high) return c.build.add(op::clip{}, x, low, high);
  return low ? x.max(low) : high ? x.min(high) : x;
}
variables parse_clip_1(call& c) {
  const value x = c.in(0);
  const auto bound = [&](std::string_view name) {
    return c.find(name) ? c.build.scalar(x.type(), c.real(name, 0)) : value();
  };
  return {clip_between(c, x, bound("min"), bound("max"))};
}
variables parse_clip(call& c) {
  return {clip_between(c, c.in(0), c.has(1) ? c.in(1) : value(), c.has(2) ? c.in(2) : value())};
}

variables parse_pow_of(call& c, value exponent) {
  const value base = c.in(0);
  const auto& producer = c.build.module().producer(exponent.id());
  if (producer.kind == instruction_kind::literal && !producer.constant.has_symbols() &&
      exponent.rank() <= base.rank() && exponent.get_shape().elements() == dimension(1)) {
    // exporters write squares and cubes this way, and norms are recognised by their squares
    const double e = producer.constant.at<double>(0);
    if (e == 1) return {base};
    if (e == 2) return {base * base};
    if (e == 3) return {base * base * base};
  }
  if (exponent.type() == base.type()) return {base.pow(exponent)};
  if (is_float(base.type())) return {base.pow(exponent.convert(base.type()))};
  if (!is_float(exponent.type())) return {base.pow(exponent.convert(base.type()))};
  return {base.convert(exponent.type()).pow(exponent).convert(base.type())};
}
variables parse_pow(call& c) { return parse_pow_of(c, c.in(1)); }
variables parse_pow_1(call& c) { return parse_pow_of(c, align_operand(c, c.in(1))); }

}  // namespace

std::span<const row> arithmetic_rows() {
  static constexpr row rows[] = {
      {"", "Clip", 1, parse_clip_1},
      {"", "Clip", 11, parse_clip},
      {"", "Max", 1, parse_variadic<op::max>},
      {"", "Mean", 1, parse_mean},
      {"", "Min", 1, parse_variadic<op::min>},
      {"", "Pow", 1, parse_pow_1},
      {"", "Pow", 7, parse_pow},
      {"", "Sum", 1, parse_variadic<op::add>},
  };
  return rows;
}

}  // namespace kiln::onnx

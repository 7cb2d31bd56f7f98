#include "kiln/onnx/impl/ops/common.hpp"

// Elementwise operators that are not one op: variadic ones, Clip, Pow.
namespace kiln::onnx {

namespace {

template <class Op> value fold_inputs(node_context& c) {
  value all = c.in(0);
  for (std::size_t i = 1; i < c.size(); ++i) all = c.build.add(Op{}, all, c.in(i));
  return all;
}
template <class Op> variables import_variadic(node_context& c) { return {fold_inputs<Op>(c)}; }
variables import_mean(node_context& c) { return {fold_inputs<op::add>(c) / static_cast<float>(c.size())}; }

value clip_between(node_context& c, value x, value low, value high) {
  if (low && high) return c.build.add(op::clip{}, x, low, high);
  return low ? x.max(low) : high ? x.min(high) : x;
}
variables import_clip_1(node_context& c) {
  const value x = c.in(0);
  const auto bound = [&](std::string_view name) {
    return c.find(name) ? c.build.scalar(x.type(), c.real(name, 0)) : value();
  };
  return {clip_between(c, x, bound("min"), bound("max"))};
}
variables import_clip(node_context& c) { return {clip_between(c, c.in(0), c.optional_in(1), c.optional_in(2))}; }

variables import_pow_of(node_context& c, value exponent) {
  const value base = c.in(0);
  const auto& producer = c.build.module().producer(exponent.id());
  if (producer.kind == instruction_kind::literal && !producer.constant.has_symbols() &&
      exponent.rank() <= base.rank() && exponent.get_shape().elements() == dimension(1)) {
    // exporters write squares and cubes this way, and fusion recognizes norms by their squares
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
variables import_pow(node_context& c) { return import_pow_of(c, c.in(1)); }
variables import_pow_1(node_context& c) { return import_pow_of(c, align_operand(c, c.in(1))); }

}  // namespace

std::span<const op_importer> arithmetic_importers() {
  static constexpr op_importer table[] = {
      {"", "Clip", 1, import_clip_1},
      {"", "Clip", 11, import_clip},
      {"", "Max", 1, import_variadic<op::max>},
      {"", "Mean", 1, import_mean},
      {"", "Min", 1, import_variadic<op::min>},
      {"", "Pow", 1, import_pow_1},
      {"", "Pow", 7, import_pow},
      {"", "Sum", 1, import_variadic<op::add>},
  };
  return table;
}

}  // namespace kiln::onnx

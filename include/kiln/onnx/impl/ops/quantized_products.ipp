#include "kiln/graph/literal_values.hpp"
#include "kiln/onnx/impl/ops/quantize.hpp"
#include "kiln/op/quant/centered_dot.hpp"

// Products of quantized tensors: real = (stored - zero) * scale.
namespace kiln::onnx {

namespace {

const literal* constant_of(const node_context& c, value v) {
  const auto& from = c.build.module().producer(v.id());
  return from.kind == instruction_kind::literal ? &from.constant : nullptr;
}
// Whether a zero point is 0, as one that is absent is.
bool is_absent(const node_context& c, value zero) {
  const literal* const l = zero ? constant_of(c, zero) : nullptr;
  return !zero || (l && uniform_value(*l) == 0.0);
}

// x as i32 minus its zero point, one number or one for each row (or column).
value centered_matrix(value x, value zero, bool rows) {
  const value wide = x.convert(dtype::i32);
  if (!zero) return wide;
  value z = zero.convert(dtype::i32);
  if (rows && z.rank() == 1 && x.rank() > 1 && !(z.dim(0) == dimension(1))) z = z.unsqueeze({1});
  return wide - z;
}

// A scale and a zero point of the same dims: one number, or one for each of `extent`.
struct linear_scale {
  value scale, zero;
};
linear_scale of_same_dims(value scale, value zero) {
  linear_scale p{scalar_or_vector(scale), zero ? scalar_or_vector(zero) : value()};
  if (p.zero && p.zero.rank() < p.scale.rank()) p.zero = p.zero.broadcast_to(p.scale.get_shape().lens);
  if (p.zero && p.scale.rank() < p.zero.rank()) p.scale = p.scale.broadcast_to(p.zero.get_shape().lens);
  return p;
}

}  // namespace

value product_of_scales(node_context& c, value a, value b) {
  const literal *const x = constant_of(c, a), *const y = constant_of(c, b);
  if (!x || !y || x->get_shape().rank() > 0 || x->get_shape().type != dtype::f32 || y->get_shape().type != dtype::f32)
    return a * b;
  small_vector<float> values = y->to<float>();
  for (float& v : values) v *= x->at<float>(0);
  return c.build.constant(literal::of<float>(y->get_shape(), values));
}

value integer_product(node_context& c, value a, value a_zero, value b, value b_zero) {
  const bool matrices = a.rank() >= 2 && b.rank() == 2, bytes = a.type() == dtype::u8 || a.type() == dtype::i8;
  if (matrices && bytes && b.type() == dtype::i8 && is_absent(c, b_zero) &&
      (!a_zero || (a_zero.type() == a.type() && scalar_or_vector(a_zero).rank() == 0))) {
    dims lens = a.get_shape().lens;
    for (std::size_t d = 0; d < 2; ++d) lens[lens.size() - 2 + d] = b.dim(d);
    const value zero = a_zero ? scalar_or_vector(a_zero) : c.build.scalar(a.type(), 0);
    if (a.rank() > 2) b = add_unfolded(c, op::multibroadcast{lens}, b);
    return c.build.add(op::centered_dot{}, a, b, zero);
  }
  return matmul(centered_matrix(a, a_zero, true), centered_matrix(b, b_zero, false));
}

value dequantized_product(node_context& c, const variables& a, const variables& b) {
  const auto of = [](const variable& v) { return v ? v.tensor : value(); };
  const linear_scale left = of_same_dims(a[1].tensor, of(a[2])), right = of_same_dims(b[1].tensor, of(b[2]));
  const value x = a[0].tensor, y = b[0].tensor;
  const bool columns = right.scale.rank() == 1 && y.rank() == 2;
  if (left.scale.rank() != 0 || !(right.scale.rank() == 0 || columns)) return {};
  return matmul(dequantized(c, x, left.scale, left.zero), dequantized(c, y, right.scale, right.zero, columns ? 1 : 0));
}

namespace {

variables import_matmul_integer(node_context& c) {
  return {integer_product(c, c.in(0), c.optional_in(2), c.in(1), c.optional_in(3))};
}
// a, its scale and zero; b, its scale and zero; the result's scale and zero
variables import_qlinear_matmul(node_context& c) {
  const bool of_f32 = c.in(1).type() == dtype::f32 && c.in(4).type() == dtype::f32 && c.in(6).type() == dtype::f32;
  if (of_f32 && scalar_or_vector(c.in(6)).rank() == 0)
    if (const value y = dequantized_product(c, {c.in(0), c.in(1), c.in(2)}, {c.in(3), c.in(4), c.in(5)}))
      return {quantized_output(c, y, 6, c.in(0).type())};
  const value sum = matmul(centered_matrix(c.in(0), c.in(2), true), centered_matrix(c.in(3), c.in(5), false));
  const auto scale_of = [&](std::size_t i, bool rows) {
    const value s = c.in(i).convert(dtype::f32);
    return rows && s.rank() == 1 && !(s.dim(0) == dimension(1)) ? s.unsqueeze({1}) : s;
  };
  const value ratio = sum.convert(dtype::f32) * (scale_of(1, true) * scale_of(4, false) / scale_of(6, true));
  return {quantized(c, ratio, c.in(7), c.in(7).type())};
}

// Centered integers, so that padding with the zero point is padding with 0. Each filter may have a zero point.
variables import_conv_integer(node_context& c) {
  const auto wide = [&](value v) { return add_unfolded(c, op::convert{dtype::i32}, v); };
  value x = wide(c.in(0)), w = wide(c.in(1));
  if (c.has(2)) x = x - c.in(2).reshape({}).convert(dtype::i32);
  if (!is_absent(c, c.optional_in(3))) {
    const value zero = scalar_or_vector(c.in(3)).convert(dtype::i32);
    w = w - (zero.rank() == 1 ? w.make_along(0, zero) : zero);
  }
  const node_context plain = c.with_inputs({variable(x), variable(w)});
  return {x.conv(w, read_convolution(plain))};
}
// x, its scale and zero; w, its scale and zero; the result's scale and zero; bias in the accumulator's scale
variables qlinear_conv(node_context& c) {
  const linear_scale filters = of_same_dims(c.in(4), c.in(5));
  const value x = dequantized_input(c, 0, 1, 2), w = dequantized(c, c.in(3), filters.scale, filters.zero, 0);
  const node_context plain = c.with_inputs({variable(x), variable(w)});
  value y = x.conv(w, read_convolution(plain));
  if (c.has(8)) {
    const value scale = product_of_scales(c, scalar_or_vector(c.in(1)), filters.scale);
    y = y.add_along(1, dequantized(c, c.in(8), scale, {}, 0));
  }
  return {quantized_output(c, y, 6, c.in(0).type())};
}

variables import_qlinear_conv(node_context& c) {
  if (!c.flag("channels_last")) return qlinear_conv(c);
  variables inputs = c.inputs;
  inputs[0] = variable(channels_first(c.in(0)));
  node_context plain = c.with_inputs(std::move(inputs));
  return {channels_last(qlinear_conv(plain)[0].tensor)};
}

variables with_bias(const node_context& c, value y, std::size_t i) { return {c.has(i) ? y + c.in(i) : y}; }

// Inputs: a, b, scale of a, scale of b, zero of a, zero of b, bias.
variables import_matmul_integer_to_float(node_context& c) {
  const auto given = [&](std::size_t i) { return c.has(i) ? c.inputs[i] : variable(); };
  if (const value y = dequantized_product(c, {c.in(0), c.in(2), given(4)}, {c.in(1), c.in(3), given(5)}))
    return with_bias(c, y, 6);
  const value sum =
      matmul(centered_matrix(c.in(0), c.optional_in(4), true), centered_matrix(c.in(1), c.optional_in(5), false));
  return with_bias(c, sum.convert(dtype::f32) * (scalar_or_vector(c.in(2)) * scalar_or_vector(c.in(3))), 6);
}
// Inputs: a, b, scale of b, zero of b, bias.
variables import_dynamic_quantize_matmul(node_context& c) {
  const quantized_tensor a = quantized_by_range(c, c.in(0));
  const value sum = integer_product(c, a.y, a.zero, c.in(1), c.optional_in(3));
  return with_bias(c, sum.convert(dtype::f32) * (a.scale * scalar_or_vector(c.in(2))), 4);
}

// Inputs: a, its scale and zero; b, its scale and zero; addend in the accumulator's scale; the result's scale and zero,
// without which the result is of floats.
variables import_qgemm(node_context& c) {
  const auto transposed = [&](std::size_t i, std::string_view flag) {
    return c.flag(flag) ? c.in(i).transpose({1, 0}) : c.in(i);
  };
  if (c.in(0).rank() != 2 || c.in(3).rank() != 2) c.malformed("A and B have rank 2");
  const value a = transposed(0, "transA"), b = transposed(3, "transB"), b_scale = scalar_or_vector(c.in(4));
  const float alpha = c.real("alpha", 1);
  value y = alpha == 1 ? dequantized_product(c, {a, c.in(1), c.in(2)}, {b, b_scale, c.in(5)}) : value();
  const value addend = c.optional_in(6);
  const bool by_columns = addend && addend.rank() > 0 && addend.dim(-1) == b.dim(1);
  if (y && (!addend || b_scale.rank() == 0 || by_columns)) {
    const value scale = product_of_scales(c, scalar_or_vector(c.in(1)), b_scale);
    if (addend) y = y + dequantized(c, addend, scale, {}, -1);
  } else {
    value sum =
        centered_matrix(a, scalar_or_vector(c.in(2)), true).dot(centered_matrix(b, scalar_or_vector(c.in(5)), false));
    if (addend) sum = sum + addend;
    y = sum.convert(dtype::f32) * (scalar_or_vector(c.in(1)) * b_scale * alpha);
  }
  return {c.has(7) ? quantized_output(c, y, 7, c.in(0).type()) : y};
}

}  // namespace

std::span<const op_importer> quantized_product_importers() {
  static constexpr op_importer table[] = {
      {"", "ConvInteger", 10, import_conv_integer},
      {"", "MatMulInteger", 10, import_matmul_integer},
      {"", "QLinearConv", 10, import_qlinear_conv},
      {"", "QLinearMatMul", 10, import_qlinear_matmul},
      {microsoft, "DynamicQuantizeMatMul", 1, import_dynamic_quantize_matmul},
      {microsoft, "MatMulIntegerToFloat", 1, import_matmul_integer_to_float},
      {microsoft, "QGemm", 1, import_qgemm},
      {microsoft, "QLinearConv", 1, import_qlinear_conv},
  };
  return table;
}

}  // namespace kiln::onnx

#include "kiln/graph/literal_values.hpp"
#include "kiln/onnx/impl/ops/cast.hpp"
#include "kiln/onnx/impl/ops/quantize.hpp"
#include "kiln/op/quant/block_dequantize.hpp"
#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/op/quant/dynamic_quantize_linear.hpp"

// Linear quantization: real = (stored - zero) * scale.
namespace kiln::onnx {

namespace {

// A scale or zero point that broadcasts with x: one number, a vector along the axis, or a number for each block.
value aligned(const node_context& c, value x, value p) {
  if (p.rank() == 0) return p;
  if (p.rank() == 1 && p.dim(0) == dimension(1)) return p.reshape({});
  const std::int64_t axis = axis_within(c, c.integer("axis", 1), x.rank());
  if (p.rank() == 1 && x.rank() >= 1 && c.integer("block_size", 0) == 0) return x.make_along(axis, p);
  const std::int64_t block = c.integer("block_size", 0);
  if (block < 1 || p.rank() != x.rank()) c.malformed("a scale is a number, a vector or has the input's rank");
  return repeat_blocks(p, axis, block, x.dim(axis));
}

struct bounds {
  float low, high;
};
bounds bounds_of(const node_context& c, dtype t) {
  switch (t) {
    case dtype::i8:
    case dtype::u8:
    case dtype::i16:
    case dtype::u16:
    case dtype::i4:
    case dtype::u4:
    case dtype::i2:
    case dtype::u2: {
      const auto count = static_cast<float>(1 << bits_of(t));
      return is_signed_integer(t) ? bounds{-count / 2, count / 2 - 1} : bounds{0, count - 1};
    }
    default: c.unsupported("quantizes to " + std::string(kiln::to_string(t)));
  }
}
}  // namespace

value repeat_blocks(value x, std::int64_t axis, std::int64_t block, dimension extent) {
  dims apart = x.get_shape().lens, together = apart;
  apart.insert(static_cast<std::size_t>(axis) + 1, block);
  together[static_cast<std::size_t>(axis)] *= block;
  return x.unsqueeze({axis + 1}).broadcast_to(apart).reshape(together).slice({{axis}, {0}, {extent}, {}});
}

value quantized(const node_context& c, value ratio, value zero, dtype t) {
  if (is_float(t) && is_narrow(t)) {  // the conversion rounds; only 4-bit floats have a zero point other than 0
    const value y = ratio.convert(dtype::f32);
    const value shifted = zero ? y + zero.convert(dtype::f32) : y;
    return (t == dtype::f4e2m1 || c.flag("saturate", true) ? saturated(shifted, t) : shifted).convert(t);
  }
  const auto [low, high] = bounds_of(c, t);
  value y = (ratio | op::round{}).convert(dtype::f32);
  if (zero) y = y + zero.convert(dtype::f32);
  return c.build.add(op::clip{}, y, c.build.scalar(dtype::f32, low), c.build.scalar(dtype::f32, high)).convert(t);
}

namespace {

// The type in which x is divided by its scale: the node's, or since version 23 the scale's.
dtype dividing_type(const node_context& c, dtype x, dtype scale) {
  if (const std::int64_t stated = c.integer("precision", 0)) return known_type(c, stated, "divides in");
  if (x == dtype::i32) return dtype::f64;
  const bool computes = is_float(scale) && !is_narrow(scale);
  return c.source.domain.empty() && c.version >= 23 && computes ? scale : dtype::f32;
}
// Whether a tensor has the scale and, if any, the zero point that ops of linear quantization take.
bool has_linear_scale(value x, value scale, value zero, std::int64_t axis) {
  if (scale.type() != dtype::f32 || scale.rank() > 1) return false;
  const std::int64_t along = normal_axis(axis, x.rank());
  if (scale.rank() == 1 && (along < 0 || !(scale.dim(0) == x.dim(along)))) return false;
  return !zero || zero.get_shape().lens == scale.get_shape().lens;
}

// Whether `dequantize_linear` takes a tensor.
bool is_stored_linearly(value x, value scale, value zero, std::int64_t axis) {
  return (kiln::detail::is_quantized_type(x.type()) || x.type() == dtype::i32) && (!zero || zero.type() == x.type()) &&
         has_linear_scale(x, scale, zero, axis);
}

variables import_quantize(node_context& c) {
  const value x = c.in(0);
  dtype t = c.has(2) ? c.in(2).type() : dtype::u8;
  if (const std::int64_t wanted = c.integer("output_dtype", 0)) {
    const dtype stated = known_type(c, wanted, "quantizes to");
    if (c.has(2) && stated != t)
      c.malformed("output_dtype is " + std::string(kiln::to_string(stated)) + ", but the zero point is " +
                  std::string(kiln::to_string(t)));
    t = stated;
  }
  const dtype divided = dividing_type(c, x.type(), c.in(1).type());
  const value number = scalar_or_vector(c.in(1)), offset = c.has(2) ? scalar_or_vector(c.in(2)) : value();
  const std::int64_t along = c.integer("axis", 1);
  if (x.type() == dtype::f32 && divided == dtype::f32 && kiln::detail::is_quantized_type(t) &&
      c.integer("block_size", 0) == 0 && has_linear_scale(x, number, offset, along)) {
    const op::quantize_linear by{t, number.rank() == 0 ? 0 : along};
    return {offset ? c.build.add(by, x, number, offset) : c.build.add(by, x, number)};
  }
  const value scale = aligned(c, x, c.in(1)), zero = c.has(2) ? aligned(c, x, c.in(2)) : value();
  return {quantized(c, x.convert(divided) / scale.convert(divided), zero, t)};
}

value centered(const node_context& c, value x, std::size_t zero) {
  const dtype t = is_float(x.type()) ? dtype::f32 : x.type() == dtype::i32 ? dtype::i64 : dtype::i32;
  const value wide = x.convert(t);
  return c.has(zero) ? wide - aligned(c, x, c.in(zero)).convert(t) : wide;
}
// Whether input 0 is of small numbers in blocks, with a scale each.
bool is_blocked(const node_context& c) {
  const value x = c.in(0), scale = c.in(1);
  if (c.integer("block_size", 0) < 1 || scale.rank() != x.rank() || x.rank() == 0) return false;
  if (size_of(x.type()) != 1 || x.type() == dtype::boolean || !is_float(scale.type())) return false;
  if (is_float(x.type()) && c.has(2)) return false;
  const auto axis = static_cast<std::size_t>(axis_within(c, c.integer("axis", 1), x.rank()));
  return x.dim(axis).is_constant() && (!c.has(2) || c.in(2).type() == x.type());
}
// The scales of blocks. Those that are floats of eight bits times a number of f32 are the former, and their factor.
value scales_of_blocks(const node_context& c, float& factor) {
  const value scale = c.in(1);
  const auto& m = c.build.module();
  const auto& made = m.producer(scale.id());
  if (made.kind != instruction_kind::op || made.inputs.size() != 2 || scale.type() != dtype::f32) return scale;
  const value_id numbers = made.inputs[0];
  value_id by = made.inputs[1];
  while (m.producer(by).kind == instruction_kind::op && m.producer(by).op.kind() == op_kind::view)
    by = m.producer(by).inputs[0];
  if (m.producer(by).kind != instruction_kind::literal) return scale;
  const auto number = uniform_value(m.producer(by).constant);
  if (!number || !(*number > 0)) return scale;
  value_id stored = numbers;
  if (made.op.is<op::mul>() && m.producer(numbers).kind == instruction_kind::op &&
      m.producer(numbers).op.is<op::convert>())
    stored = m.producer(numbers).inputs[0];
  else if (!made.op.is<op::dequantize_linear>())
    return scale;
  if (!is_narrow(m.shape_of(stored).type) || !is_float(m.shape_of(stored).type)) return scale;
  factor = static_cast<float>(*number);
  return value(&c.build, stored);
}
// Whether input 0 is a constant matrix of floats of eight bits, with a scale of f32 for all or each row or column: the
// op keeps it as it is stored.
bool is_float_matrix(const node_context& c) {
  const literal* const x = c.constant(0);
  const literal* const scale = c.constant(1);
  if (!x || !scale || c.integer("block_size", 0) != 0) return false;
  if (c.has(2) && (!c.constant(2) || uniform_value(*c.constant(2)) != 0.0)) return false;
  return quantize::is_float8(x->get_shape().type) && x->get_shape().rank() == 2 &&
         scale->get_shape().type == dtype::f32 && scale->get_shape().rank() <= 1;
}
variables import_dequantize(node_context& c) {
  const std::int64_t stated = c.integer("output_dtype", 0);
  if (is_blocked(c)) {
    op::block_dequantize stored{.axis = c.integer("axis", 1), .block = c.integer("block_size", 0)};
    const value scale = scales_of_blocks(c, stored.factor);
    if (is_narrow(c.in(1).type()) && !stated)
      c.malformed("output_dtype is missing, and the scale's type is none of the output's");
    const value real =
        c.has(2) ? add_unfolded(c, stored, c.in(0), scale, c.in(2)) : add_unfolded(c, stored, c.in(0), scale);
    return {stated ? real.convert(known_type(c, stated, "gives")) : real};
  }
  const value x = c.in(0), number = scalar_or_vector(c.in(1)), offset = c.has(2) ? scalar_or_vector(c.in(2)) : value();
  const std::int64_t along = c.integer("axis", 1);
  const bool gives_f32 = number.type() == dtype::f32 && (!stated || known_type(c, stated, "gives") == dtype::f32);
  if (gives_f32 && is_float_matrix(c)) return {add_unfolded(c, op::dequantize_linear{along}, x, number)};
  if (gives_f32 && c.integer("block_size", 0) == 0 && is_stored_linearly(x, number, offset, along))
    return {dequantized(c, x, number, offset, along)};
  const value scale = aligned(c, x, c.in(1));
  const dtype t = stated ? known_type(c, stated, "gives") : scale.type();
  if (is_narrow(t)) c.malformed("output_dtype is missing, and the scale's type is none of the output's");
  return {(centered(c, x, 2).convert(dtype::f32) * scale.convert(dtype::f32)).convert(t)};
}

}  // namespace

quantized_tensor quantized_by_range(node_context& c, value x) {
  const value bytes = c.build.add(op::dynamic_quantize_linear{}, x);
  return {bytes, bytes.result(1), bytes.result(2)};
}

value dequantized(node_context& c, value stored, value scale, value zero, std::int64_t axis) {
  if (is_stored_linearly(stored, scale, zero, axis)) {
    const op::dequantize_linear by{scale.rank() == 0 ? 0 : axis};
    return zero ? add_unfolded(c, by, stored, scale, zero) : add_unfolded(c, by, stored, scale);
  }
  const auto along = [&](value v) { return v.rank() == 1 && stored.rank() > 0 ? stored.make_along(axis, v) : v; };
  const value wide = stored.convert(dtype::i32);
  const value centered = zero ? wide - along(zero.convert(dtype::i32)) : wide;
  return centered.convert(dtype::f32) * along(scale.convert(dtype::f32));
}
value dequantized_input(node_context& c, std::size_t stored, std::size_t scale, std::size_t zero) {
  return dequantized(c, c.in(stored), scalar_or_vector(c.in(scale)),
                     c.has(zero) ? scalar_or_vector(c.in(zero)) : value(), -1);
}
value quantized_output(node_context& c, value y, std::size_t i, dtype t) {
  const value scale = scalar_or_vector(c.in(i)), zero = c.has(i + 1) ? scalar_or_vector(c.in(i + 1)) : value();
  if (zero) t = zero.type();
  if (y.type() == dtype::f32 && kiln::detail::is_quantized_type(t) && has_linear_scale(y, scale, zero, -1)) {
    const op::quantize_linear by{t, scale.rank() == 0 ? 0 : -1};
    return zero ? c.build.add(by, y, scale, zero) : c.build.add(by, y, scale);
  }
  return quantized(c, y / scale, zero, t);
}

namespace {

variables import_dynamic_quantize(node_context& c) {
  const quantized_tensor q = quantized_by_range(c, c.in(0));
  return {q.y, q.scale, q.zero};
}

}  // namespace

std::span<const op_importer> quantize_importers() {
  static constexpr op_importer table[] = {
      {"", "DequantizeLinear", 10, import_dequantize},   {"", "DynamicQuantizeLinear", 11, import_dynamic_quantize},
      {"", "QuantizeLinear", 10, import_quantize},       {microsoft, "DequantizeLinear", 1, import_dequantize},
      {microsoft, "QuantizeLinear", 1, import_quantize},
  };
  return table;
}

}  // namespace kiln::onnx

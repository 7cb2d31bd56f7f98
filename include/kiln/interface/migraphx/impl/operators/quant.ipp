#include "kiln/interface/migraphx/impl/operators/lowering.hpp"

// Linear quantization, and pairs of 4-bit numbers in a byte. Scales and zero points have the operand's extents.
namespace kiln::migraphx {

namespace {

struct bounds {
  double low, high;
};
bounds bounds_of(dtype t) {
  switch (t) {
    case dtype::i8: return {-128, 127};
    case dtype::u8: return {0, 255};
    case dtype::i16: return {-32768, 32767};
    case dtype::u16: return {0, 65535};
    case dtype::i32: return {-2147483648., 2147483520.};
    case dtype::f8e4m3fn: return {-448, 448};
    case dtype::f8e4m3fnuz: return {-240, 240};
    case dtype::f8e5m2:
    case dtype::f8e5m2fnuz: return {-57344, 57344};
    default: raise(fault::of(errc::unsupported, "a type that numbers are quantized to", "8 or 16 bits", t));
  }
}

value_list add_quantize(lowering& c) {
  c.expect(2, 3);
  const value x = c.in(0).convert(dtype::f32), scale = c.in(1).convert(dtype::f32);
  const bool typed = !c.op.values().at("out_type").is_null();
  const dtype t = c.has(2) ? c.in(2).type() : typed ? c.type("out_type") : dtype::u8;
  const auto [low, high] = bounds_of(t);
  value y = x / scale;
  if (is_integer(t)) y = y | op::round{};
  if (c.has(2)) y = y + c.in(2).convert(dtype::f32);
  const value clipped = c.build.add(op::clip{}, y, c.build.scalar(dtype::f32, low), c.build.scalar(dtype::f32, high));
  return {clipped.convert(t)};
}
value_list add_dequantize(lowering& c) {
  c.expect(2, 3);
  const dtype t = c.in(1).type();
  value x = c.in(0).convert(dtype::f32);
  if (c.has(2)) x = x - c.in(2).convert(dtype::f32);
  return {(x * c.in(1).convert(dtype::f32)).convert(t)};
}

// Elements along the axis by pairs; the first of a pair has the low bits.
value_list add_pack(lowering& c) {
  c.expect(1);
  const std::int64_t axis = c.axis("axis");
  const value x = c.in(0);
  if (!(x.dim(axis) % 2 == dimension(0)))
    raise(fault::of(errc::shape_mismatch, "the packed extent is even", 2, x.get_shape().lens));
  const value sixteen = c.build.scalar(dtype::i32, 16);
  const auto half = [&](std::int64_t from) {
    return c.build.add(op::mod{}, x.slice({{axis}, {from}, {x.dim(axis)}, {2}}).convert(dtype::i32), sixteen);
  };
  return {(half(0) + half(1) * sixteen).convert(x.type())};
}
value_list add_unpack(lowering& c) {
  c.expect(1);
  const std::int64_t axis = c.axis("axis");
  const value x = c.in(0), wide = x.convert(dtype::i32), sixteen = c.build.scalar(dtype::i32, 16);
  const value low = c.build.add(op::mod{}, wide, sixteen),
              high = c.build.add(op::mod{}, (wide - low) / sixteen, sixteen);
  const auto own_sign = [&](value v) {  // 8 to 15 are -8 to -1 where the type has a sign
    if (is_unsigned_integer(x.type())) return v;
    const value eight = c.build.scalar(dtype::i32, 8);
    return c.build.add(op::mod{}, v + eight, sixteen) - eight;
  };
  dims lens = x.get_shape().lens;
  lens[static_cast<std::size_t>(axis)] *= 2;
  const value both = c.build.add(op::concat{axis + 1}, small_vector<value>{own_sign(low).unsqueeze({axis + 1}),
                                                                           own_sign(high).unsqueeze({axis + 1})});
  return {both.reshape(lens).convert(x.type())};
}

}  // namespace

operator_table quant_operators() {
  static constexpr operator_row table[] = {
      {"dequantizelinear", "", add_dequantize},
      {"pack_int4", "axis: -1", add_pack},
      {"quantizelinear", "out_type: null", add_quantize},
      {"unpack_int4", "axis: -1", add_unpack},
  };
  return table;
}

}  // namespace kiln::migraphx

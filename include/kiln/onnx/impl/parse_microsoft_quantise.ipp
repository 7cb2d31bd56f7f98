#include "kiln/onnx/impl/quantise.hpp"

// Quantised operators of com.microsoft.
namespace kiln::onnx {

namespace {

value scalar_or_vector(value x) { return x.rank() == 1 && x.dim(0) == dimension(1) ? x.reshape({}) : x; }
// (stored - zero) * scale of inputs i, i + 1 and i + 2.
value real_input(call& c, std::size_t i) {
  const value wide = c.in(i).convert(dtype::i32);
  const value centred = c.has(i + 2) ? wide - scalar_or_vector(c.in(i + 2)).convert(dtype::i32) : wide;
  return centred.convert(dtype::f32) * scalar_or_vector(c.in(i + 1)).convert(dtype::f32);
}
// By the scale that is input i and the zero point behind it.
value stored(call& c, value y, std::size_t i, dtype t) {
  const value zero = c.has(i + 1) ? scalar_or_vector(c.in(i + 1)) : value();
  return quantised(c, y / scalar_or_vector(c.in(i)), zero, zero ? zero.type() : t);
}

template <class Op>
variables parse_qlinear_binary(call& c) {
  return {stored(c, c.build.add(Op{}, real_input(c, 0), real_input(c, 3)), 6, c.in(0).type())};
}
variables parse_qlinear_leaky_relu(call& c) {
  return {stored(c, real_input(c, 0).leaky_relu({c.real("alpha", .01f)}), 3, c.in(0).type())};
}
variables parse_qlinear_sigmoid(call& c) { return {stored(c, real_input(c, 0).sigmoid(), 3, c.in(0).type())}; }

variables parse_qlinear_concat(call& c) {
  if (c.size() < 5 || (c.size() - 2) % 3 != 0) c.malformed("inputs are a scale, a zero point, and three for each part");
  small_vector<value> parts;
  for (std::size_t i = 2; i < c.size(); i += 3) parts.push_back(real_input(c, i));
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), parts[0].rank());
  return {stored(c, parts.size() == 1 ? parts[0] : c.build.add(op::concat{axis}, parts), 0, c.in(2).type())};
}

ints channels_to(std::size_t rank, bool last) {
  ints order{0};
  if (!last) order.push_back(static_cast<std::int64_t>(rank) - 1);
  for (std::size_t d = last ? 2 : 1; d + (last ? 0 : 1) < rank; ++d) order.push_back(static_cast<std::int64_t>(d));
  if (last) order.push_back(1);
  return order;
}
template <class Pool>
variables pooled(call& c, Pool pool) {
  const bool last = c.flag("channels_last");
  value x = real_input(c, 0);
  if (last) x = x.transpose(channels_to(x.rank(), false));
  value y = pool(x);
  if (last) y = y.transpose(channels_to(y.rank(), true));
  return {stored(c, y, 3, c.in(0).type())};
}
variables parse_qlinear_average_pool(call& c) {
  return pooled(c, [&](value x) {
    call at{c.build, c.source, c.version, {variable(x)}, c.bodies};
    return average_pool(at)[0].tensor;
  });
}
variables parse_qlinear_global_average_pool(call& c) {
  return pooled(c, [&](value x) { return x.reduce_mean(axes_from(2, x.rank())); });
}

value with_bias(call& c, value y, std::size_t i) { return c.has(i) ? y + c.in(i) : y; }
value optional(const call& c, std::size_t i) { return c.has(i) ? c.in(i) : value(); }

// Inputs: a, b, scale of a, scale of b, zero of a, zero of b, bias.
variables parse_matmul_integer_to_float(call& c) {
  const value sum =
      matmul(centred_matrix(c.in(0), optional(c, 4), true), centred_matrix(c.in(1), optional(c, 5), false));
  return {with_bias(c, sum.convert(dtype::f32) * (scalar_or_vector(c.in(2)) * scalar_or_vector(c.in(3))), 6)};
}
// Inputs: a, b, scale of b, zero of b, bias.
variables parse_dynamic_quantise_matmul(call& c) {
  const own_quantised a = quantised_by_range(c, c.in(0));
  const value sum = matmul(centred_matrix(a.y, a.zero, true), centred_matrix(c.in(1), optional(c, 3), false));
  return {with_bias(c, sum.convert(dtype::f32) * (a.scale * scalar_or_vector(c.in(2))), 4)};
}

// Fields of `bits` bits of the bytes along the last dim, the lowest first: i32.
value unpacked(call& c, value packed, std::int64_t bits) {
  if (bits == 8) return packed.convert(dtype::i32);
  if (bits != 4 && bits != 2) c.unsupported(std::to_string(bits) + " bits a weight");
  const value wide = packed.convert(dtype::u32).unsqueeze({-1});
  const std::int64_t each = 8 / bits;
  const value shift = (c.build.add(op::iota{{each}, 0, dtype::i64}) * bits).convert(dtype::u32);
  const value fields = c.build.add(op::bitwise_and{}, c.build.add(op::shift_right{}, wide, shift),
                                   c.build.scalar(dtype::u32, (1u << bits) - 1));
  dims lens = packed.get_shape().lens;
  lens.back() = lens.back() * each;
  return fields.reshape(lens).convert(dtype::i32);
}

// A times the transpose of N rows of K weights that are stored in blocks, each with a scale and a zero point.
variables parse_matmul_n_bits(call& c) {
  const std::int64_t depth = c.integer("K", 0), columns = c.integer("N", 0), bits = c.integer("bits", 4),
                     block = c.integer("block_size", 0);
  if (depth < 1 || columns < 1 || block < 1) c.malformed("K, N and block_size are positive");
  const std::int64_t blocks = (depth + block - 1) / block;
  const value fields = unpacked(c, c.in(1).reshape({columns, blocks, block * bits / 8}), bits);
  // g_idx says which block's scale and zero point each row of the weights has; they are in order without it
  const bool ordered = !c.has(4) || c.in(4).get_shape().elements() == dimension(0);
  const dtype t = c.in(2).type();
  const auto whole = [&](value x) { return x.reshape({columns, blocks * block}).slice({{1}, {0}, {depth}, {}}); };
  const auto of_blocks = [&](value x) {  // [columns, blocks]
    return ordered ? x.unsqueeze({2}) : x.gather(c.in(4).reshape({depth}), 1);
  };
  const value own = fields.convert(t), scale = of_blocks(c.in(2).reshape({columns, blocks}));
  value centred = ordered ? own : whole(own);
  if (c.has(3) && is_float(c.in(3).type())) {
    centred = centred - of_blocks(c.in(3).reshape({columns, blocks}));
  } else if (c.has(3)) {
    const std::int64_t bytes = (blocks * bits + 7) / 8;
    const value zeros = unpacked(c, c.in(3).reshape({columns, bytes}), bits);
    centred = centred - of_blocks(zeros.slice({{1}, {0}, {blocks}, {}}).convert(t));
  } else {
    centred = centred - static_cast<float>(1 << (bits - 1));
  }
  const value weights = ordered ? whole(centred * scale) : centred * scale;
  return {with_bias(c, c.in(0).dot(weights.convert(c.in(0).type()).transpose({1, 0})), 5)};
}

// Rows picked from quantised data and made real by their blocks' scales.
variables parse_gather_block_quantised(call& c) {
  const std::int64_t bits = c.integer("bits", 4), block = c.integer("block_size", 128);
  const bool packed = c.in(0).type() == dtype::u8;
  if (block < 1) c.malformed("block_size is positive");
  const std::size_t rank = c.in(0).rank();
  const std::int64_t from = axis_within(c, c.integer("gather_axis", 0), rank),
                     along = axis_within(c, c.integer("quantize_axis", 1), rank);
  const auto fields = [&](value x) {
    return packed && x.type() == dtype::u8 ? unpacked(c, x, bits) : x.convert(dtype::i32);
  };
  const value data = fields(c.in(0)), scale = c.in(2);
  const auto repeated = [&](value x) {
    const dims lens = x.get_shape().lens;
    dims apart = lens, together = lens;
    apart.insert(static_cast<std::size_t>(along) + 1, block);
    together[static_cast<std::size_t>(along)] *= block;
    return x.unsqueeze({along + 1}).broadcast_to(apart).reshape(together).slice({{along}, {0}, {data.dim(along)}, {}});
  };
  value centred = data.convert(scale.type());
  if (c.has(3))
    centred = centred - repeated(fields(c.in(3)).slice({{along}, {0}, {scale.dim(along)}, {}}).convert(scale.type()));
  else if (packed)
    centred = centred - static_cast<float>(1 << (bits - 1));
  return {(centred * repeated(scale)).gather(c.in(1), from)};
}

}  // namespace

std::span<const row> microsoft_quantise_rows() {
  static constexpr row rows[] = {
      {microsoft, "DynamicQuantizeMatMul", 1, parse_dynamic_quantise_matmul},
      {microsoft, "GatherBlockQuantized", 1, parse_gather_block_quantised},
      {microsoft, "MatMulIntegerToFloat", 1, parse_matmul_integer_to_float},
      {microsoft, "MatMulNBits", 1, parse_matmul_n_bits, "2, 4 and 8 bits"},
      {microsoft, "QLinearAdd", 1, parse_qlinear_binary<op::add>},
      {microsoft, "QLinearAveragePool", 1, parse_qlinear_average_pool},
      {microsoft, "QLinearConcat", 1, parse_qlinear_concat},
      {microsoft, "QLinearGlobalAveragePool", 1, parse_qlinear_global_average_pool},
      {microsoft, "QLinearLeakyRelu", 1, parse_qlinear_leaky_relu},
      {microsoft, "QLinearMul", 1, parse_qlinear_binary<op::mul>},
      {microsoft, "QLinearSigmoid", 1, parse_qlinear_sigmoid},
  };
  return rows;
}

}  // namespace kiln::onnx

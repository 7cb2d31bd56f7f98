#include <algorithm>
#include <cstring>
#include <optional>

#include "kiln/onnx/impl/ops/quantize.hpp"
#include "kiln/op/quant/block_dequantize.hpp"

// Quantized operators of com.microsoft.
namespace kiln::onnx {

namespace {

// (stored - zero) * scale of inputs i, i + 1 and i + 2.
value real_input(node_context& c, std::size_t i) { return dequantized_input(c, i, i + 1, i + 2); }
value stored(node_context& c, value y, std::size_t i, dtype t) { return quantized_output(c, y, i, t); }

template <class Op> variables import_qlinear_binary(node_context& c) {
  return {stored(c, c.build.add(Op{}, real_input(c, 0), real_input(c, 3)), 6, c.in(0).type())};
}
variables import_qlinear_leaky_relu(node_context& c) {
  return {stored(c, real_input(c, 0).leaky_relu({c.real("alpha", .01f)}), 3, c.in(0).type())};
}
variables import_qlinear_sigmoid(node_context& c) { return {stored(c, real_input(c, 0).sigmoid(), 3, c.in(0).type())}; }

// Inputs: the condition; x and y, each with scale and zero; the result's scale and zero.
variables import_qlinear_where(node_context& c) {
  return {stored(c, c.in(0).where(real_input(c, 1), real_input(c, 4)), 7, c.in(1).type())};
}
variables import_qlinear_softmax(node_context& c) {
  const value x = real_input(c, 0);
  const std::int64_t axis = axis_within(c, c.integer("axis", -1), x.rank());
  // as Softmax before operator set 13, which takes all dims from the axis on
  const bool flat = c.integer("opset", 13) < 13;
  const value y = flat ? x.flatten(axis).softmax(1).reshape(x.get_shape().lens) : x.softmax(axis);
  return {stored(c, y, 3, c.in(0).type())};
}
variables import_qlinear_reduce_mean(node_context& c) {
  const value x = real_input(c, 0);
  const ints axes = axes_attribute(c, x.rank());
  const value mean = x.reduce_mean(axes);
  return {stored(c, c.flag("keepdims", true) ? mean : mean.squeeze(axes), 3, c.in(0).type())};
}

variables import_qlinear_concat(node_context& c) {
  if (c.size() < 5 || (c.size() - 2) % 3 != 0) c.malformed("inputs are a scale, a zero point, and three for each part");
  small_vector<value> parts;
  for (std::size_t i = 2; i < c.size(); i += 3) parts.push_back(real_input(c, i));
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), parts[0].rank());
  return {stored(c, parts.size() == 1 ? parts[0] : c.build.add(op::concat{axis}, parts), 0, c.in(2).type())};
}

template <class Pool> variables pooled(node_context& c, Pool pool) {
  const bool last = c.flag("channels_last");
  value x = real_input(c, 0);
  if (last) x = channels_first(x);
  value y = pool(x);
  if (last) y = channels_last(y);
  return {stored(c, y, 3, c.in(0).type())};
}
variables import_qlinear_average_pool(node_context& c) {
  return pooled(c, [&](value x) {
    node_context at = c.with_inputs({variable(x)});
    return average_pool(at)[0].tensor;
  });
}
variables import_qlinear_global_average_pool(node_context& c) {
  return pooled(c, [&](value x) { return x.reduce_mean(axes_from(2, x.rank())); });
}

value with_bias(node_context& c, value y, std::size_t i) { return c.has(i) ? y + c.in(i) : y; }

// Inputs: a, b, scale of a, scale of b, zero of a, zero of b, bias.
variables import_matmul_integer_to_float(node_context& c) {
  const value sum =
      matmul(centered_matrix(c.in(0), c.optional_in(4), true), centered_matrix(c.in(1), c.optional_in(5), false));
  return {with_bias(c, sum.convert(dtype::f32) * (scalar_or_vector(c.in(2)) * scalar_or_vector(c.in(3))), 6)};
}
// Inputs: a, b, scale of b, zero of b, bias.
variables import_dynamic_quantize_matmul(node_context& c) {
  const quantized_tensor a = quantized_by_range(c, c.in(0));
  const value sum = matmul(centered_matrix(a.y, a.zero, true), centered_matrix(c.in(1), c.optional_in(3), false));
  return {with_bias(c, sum.convert(dtype::f32) * (a.scale * scalar_or_vector(c.in(2))), 4)};
}

// Inputs: a, its scale and zero; b, its scale and zero; addend in the accumulator's scale; the result's scale and zero,
// without which the result is of floats.
variables import_qgemm(node_context& c) {
  const auto transposed = [&](std::size_t i, std::string_view flag) {
    return c.flag(flag) ? c.in(i).transpose({1, 0}) : c.in(i);
  };
  if (c.in(0).rank() != 2 || c.in(3).rank() != 2) c.malformed("A and B have rank 2");
  value sum = centered_matrix(transposed(0, "transA"), scalar_or_vector(c.in(2)), true)
                  .dot(centered_matrix(transposed(3, "transB"), scalar_or_vector(c.in(5)), false));
  if (c.has(6)) sum = sum + c.in(6);
  const value scale = scalar_or_vector(c.in(1)) * scalar_or_vector(c.in(4)) * c.real("alpha", 1);
  const value y = sum.convert(dtype::f32) * scale;
  return {c.has(7) ? stored(c, y, 7, c.in(0).type()) : y};
}

// The fields of `bits` bits in the bytes along the last dim, the lowest first, as i32.
value unpacked(node_context& c, value packed, std::int64_t bits) {
  if (bits == 8) return packed.convert(dtype::i32);
  const value wide = packed.convert(dtype::u32).unsqueeze({-1});
  const std::int64_t each = fields_per_byte(bits);
  const value shift = (indices_along(c, 1, 0, each) * bits).convert(dtype::u32);
  const value fields = c.build.add(op::bitwise_and{}, c.build.add(op::shift_right{}, wide, shift),
                                   c.build.scalar(dtype::u32, (1u << bits) - 1));
  dims lens = packed.get_shape().lens;
  lens.back() = lens.back() * each;
  return fields.reshape(lens).convert(dtype::i32);
}
void check_bits(node_context& c, std::int64_t bits) {
  if (bits != 2 && bits != 4 && bits != 8) c.unsupported(std::to_string(bits) + " bits a weight");
}

// weights[N, K] of MatMulNBits whose inputs say which block's scale and zero point each weight of a row has.
value regrouped_weights(node_context& c, std::int64_t bits, std::int64_t block, std::int64_t depth,
                        std::int64_t columns) {
  const std::int64_t blocks = (depth + block - 1) / block;
  const dtype t = c.in(2).type();
  const auto of_blocks = [&](value x) { return x.gather(c.in(4).reshape({depth}), 1); };
  value centered = unpacked(c, c.in(1).reshape({columns, blocks * block * bits / 8}), bits)
                       .slice({{1}, {0}, {depth}, {}})
                       .convert(t);
  if (c.has(3) && is_float(c.in(3).type())) {
    centered = centered - of_blocks(c.in(3).reshape({columns, blocks}));
  } else if (c.has(3)) {
    const value zeros = unpacked(c, c.in(3).reshape({columns, (blocks * bits + 7) / 8}), bits);
    centered = centered - of_blocks(zeros.slice({{1}, {0}, {blocks}, {}}).convert(t));
  } else {
    centered = centered - static_cast<float>(1 << (bits - 1));
  }
  return centered * of_blocks(c.in(2).reshape({columns, blocks}));
}

// For each place of the depth the weight that belongs there, where blocks are to be adjacent: `groups` says which block
// each weight is of. Empty where blocks have other sizes than adjacent ones would.
std::optional<small_vector<std::int64_t>> places_by_block(const literal& groups, std::int64_t depth,
                                                          std::int64_t block) {
  if (groups.elements() != depth) return std::nullopt;
  small_vector<std::int64_t> from(static_cast<std::size_t>(depth), 0),
      used((static_cast<std::size_t>(depth + block - 1)) / static_cast<std::size_t>(block), 0);
  std::int64_t k = 0;
  for (const std::int64_t g : groups.to<std::int64_t>()) {
    if (g < 0 || g >= static_cast<std::int64_t>(used.size())) return std::nullopt;
    const std::int64_t inside = used[static_cast<std::size_t>(g)]++, at = g * block + inside;
    if (inside == block || at >= depth) return std::nullopt;
    from[static_cast<std::size_t>(at)] = k++;
  }
  return from;
}
// Rows of `fields` fields each with their first ones in another order.
literal reordered(const literal& data, const dims& lens, std::int64_t bits, const small_vector<std::int64_t>& from) {
  const std::int64_t rows = lens[0].value(), row_bytes = lens[1].value();
  buffer out = buffer::allocate(static_cast<std::size_t>(rows * row_bytes));
  std::memcpy(out.data(), data.bytes(), out.size());
  const unsigned mask = (1u << bits) - 1;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::byte* const in = data.bytes() + r * row_bytes;
    std::byte* const to = out.data() + r * row_bytes;
    for (std::size_t k = 0; k < from.size(); ++k) {
      const std::size_t at = k * static_cast<std::size_t>(bits), source = static_cast<std::size_t>(from[k] * bits);
      const unsigned field = static_cast<unsigned>(in[source / 8]) >> (source % 8) & mask;
      to[at / 8] =
          static_cast<std::byte>((static_cast<unsigned>(to[at / 8]) & ~(mask << (at % 8))) | field << (at % 8));
    }
  }
  return literal({dtype::u8, lens}, std::move(out));
}

// A times the transpose of weights[N, K] that are stored in blocks, each with a scale and a zero point.
variables import_matmul_n_bits(node_context& c) {
  const std::int64_t depth = c.integer("K", 0), columns = c.integer("N", 0), bits = c.integer("bits", 4),
                     block = c.integer("block_size", 0);
  check_bits(c, bits);
  if (depth < 1 || columns < 1 || block < 1 || block * bits % 8 != 0)
    c.malformed("K, N and block_size are positive, and a block is whole bytes");
  const std::int64_t blocks = (depth + block - 1) / block;
  const dims packed{columns, blocks * block * bits / 8};
  value left = c.in(0), data;
  const auto product = [&](value weights) {
    return with_bias(c, matmul(left, weights.convert(left.type()).transpose({1, 0})), 5);
  };
  if (c.has(4) && !(c.in(4).get_shape().elements() == dimension(0))) {
    const literal *const groups = c.constant(4), *const numbers = c.constant(1);
    const bool known = groups && numbers && numbers->get_shape().type == dtype::u8 &&
                       numbers->elements() == kiln::product(packed).value();
    const auto from = known ? places_by_block(*groups, depth, block) : std::nullopt;
    if (!from) return {product(regrouped_weights(c, bits, block, depth, columns))};
    if (!std::is_sorted(from->begin(), from->end())) {
      data = c.build.constant(reordered(*numbers, packed, bits, *from));
      left = left.gather(c.build.constant(literal::of<std::int64_t>({dtype::i64, {depth}}, *from)), -1);
    }
  }
  op::block_dequantize stored{.bits = bits, .axis = 1, .block = block};
  if (blocks * block != depth) stored.extent = depth;
  stored.bytes_suffice = c.integer("accuracy_level", 0) == 4;
  if (!data) data = c.in(1).reshape(packed);
  const value scale = c.in(2).reshape({columns, blocks});
  if (!c.has(3)) {
    stored.zero = 1 << (bits - 1);
    return {product(c.build.add(stored, data, scale))};
  }
  const std::int64_t zeros = is_float(c.in(3).type()) ? blocks : (blocks * bits + 7) / 8;
  return {product(c.build.add(stored, data, scale, c.in(3).reshape({columns, zeros})))};
}

// The numbers that bitsandbytes' 4-bit codes stand for (Dettmers et al. 2023): sign, two bits of exponent and one of
// mantissa; or quantiles of the normal distribution.
constexpr float fp4_numbers[] = {0,     5.208333333e-03f,  .66666667f,  1,  .33333333f,  .5f,  .16666667f,  .25f,
                                 -0.0f, -5.208333333e-03f, -.66666667f, -1, -.33333333f, -.5f, -.16666667f, -.25f};
constexpr float nf4_numbers[] = {-1,
                                 -.6961928009986877f,
                                 -.5250730514526367f,
                                 -.39491748809814453f,
                                 -.28444138169288635f,
                                 -.18477343022823334f,
                                 -.09105003625154495f,
                                 0,
                                 .07958029955625534f,
                                 .16093020141124725f,
                                 .24611230194568634f,
                                 .33791524171829224f,
                                 .44070982933044434f,
                                 .5626170039176941f,
                                 .7229568362236023f,
                                 1};

// A times the transpose of weights[N, K], codes of 4 bits each with the first one high, and the greatest magnitude of
// each block of the flat weights.
variables import_matmul_bnb4(node_context& c) {
  const std::int64_t depth = c.integer("K", 0), columns = c.integer("N", 0), block = c.integer("block_size", 0);
  if (depth < 1 || columns < 1 || block < 1) c.malformed("K, N and block_size are positive");
  std::int64_t all = 0;
  if (__builtin_mul_overflow(depth, columns, &all)) c.malformed("K times N is no number of weights");
  const std::int64_t kind = c.integer("quant_type", 0);
  if (kind != 0 && kind != 1) c.malformed("quant_type is 0 for FP4 or 1 for NF4, found " + std::to_string(kind));
  if (!c.flag("transB", true)) c.unsupported("transB = 0, which training alone reads");
  const value bytes = c.in(1).reshape({(all + 1) / 2}).convert(dtype::u32).unsqueeze({1});
  const value shift = c.build.constant(literal::of<std::int64_t>({dtype::u32, {2}}, small_vector<std::int64_t>{4, 0}));
  const value codes =
      c.build.add(op::bitwise_and{}, c.build.add(op::shift_right{}, bytes, shift), c.build.scalar(dtype::u32, 15u));
  const value numbers =
      c.build.constant(dtype::f32, {16}, std::span<const float>(kind == 0 ? fp4_numbers : nf4_numbers));
  const value flat =
      numbers.gather(codes.reshape({(all + 1) / 2 * 2}).convert(dtype::i64), 0).slice({{0}, {0}, {all}, {}});
  const value most = repeat_blocks(c.in(2).reshape({(all + block - 1) / block}).convert(dtype::f32), 0, block, all);
  const value weights = (flat * most).reshape({columns, depth}).convert(c.in(0).type());
  return {matmul(c.in(0), weights.transpose({1, 0}))};
}

// Rows gathered from block-quantized data, dequantized.
variables import_gather_block_quantized(node_context& c) {
  const bool packed = c.in(0).type() == dtype::u8;
  const std::int64_t bits = packed ? c.integer("bits", 4) : 8, block = c.integer("block_size", 128);
  check_bits(c, bits);
  if (block < 1) c.malformed("block_size is positive");
  const auto rank = static_cast<std::int64_t>(c.in(0).rank());
  const std::int64_t from = axis_within(c, c.integer("gather_axis", 0), c.in(0).rank()),
                     along = axis_within(c, c.integer("quantize_axis", 1), c.in(0).rank());
  op::block_dequantize stored{.bits = bits, .axis = along, .block = block};
  if (packed) stored.zero = 1 << (bits - 1);
  small_vector<value> operands{c.in(0), c.in(2)};
  if (c.has(3)) operands.push_back(c.in(3));
  // where an index picks whole blocks and whole bytes of every operand, what it picks is dequantized
  const bool picks_stored = from != along && (bits == 8 || from != rank - 1);
  if (!picks_stored) return {c.build.add(stored, operands).gather(c.in(1), from)};
  const auto indexed = static_cast<std::int64_t>(c.in(1).rank());
  stored.axis = along < from ? along : along + indexed - 1;
  for (value& v : operands) v = v.gather(c.in(1), from);
  return {c.build.add(stored, operands)};
}

}  // namespace

std::span<const op_importer> microsoft_quantize_importers() {
  static constexpr op_importer table[] = {
      {microsoft, "DynamicQuantizeMatMul", 1, import_dynamic_quantize_matmul},
      {microsoft, "GatherBlockQuantized", 1, import_gather_block_quantized},
      {microsoft, "MatMulBnb4", 1, import_matmul_bnb4},
      {microsoft, "MatMulIntegerToFloat", 1, import_matmul_integer_to_float},
      {microsoft, "MatMulNBits", 1, import_matmul_n_bits, "2, 4 and 8 bits"},
      {microsoft, "QGemm", 1, import_qgemm},
      {microsoft, "QLinearAdd", 1, import_qlinear_binary<op::add>},
      {microsoft, "QLinearAveragePool", 1, import_qlinear_average_pool},
      {microsoft, "QLinearConcat", 1, import_qlinear_concat},
      {microsoft, "QLinearGlobalAveragePool", 1, import_qlinear_global_average_pool},
      {microsoft, "QLinearLeakyRelu", 1, import_qlinear_leaky_relu},
      {microsoft, "QLinearMul", 1, import_qlinear_binary<op::mul>},
      {microsoft, "QLinearReduceMean", 1, import_qlinear_reduce_mean},
      {microsoft, "QLinearSigmoid", 1, import_qlinear_sigmoid},
      {microsoft, "QLinearSoftmax", 1, import_qlinear_softmax},
      {microsoft, "QLinearWhere", 1, import_qlinear_where},
  };
  return table;
}

}  // namespace kiln::onnx

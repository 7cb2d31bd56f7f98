#include <algorithm>
#include <cstring>
#include <optional>

#include "kiln/onnx/impl/ops/quantize.hpp"
#include "kiln/op/quant/block_dequantize.hpp"

// Weights of few bits in blocks, as operators of com.microsoft read them.
namespace kiln::onnx {

namespace {

value with_bias(const node_context& c, value y, std::size_t i) { return c.has(i) ? y + c.in(i) : y; }

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

// Input i with other extents. A constant remains one, of its own name: what stores numbers in blocks is told by it.
value with_extents(node_context& c, std::size_t i, const dims& lens) {
  const literal* const l = c.constant(i);
  if (!l || l->has_symbols() || !(product(lens) == dimension(l->elements()))) return c.in(i).reshape(lens);
  if (l->get_shape().lens == lens) return c.in(i);
  const value out = c.build.constant(l->reshaped(lens));
  module_graph& m = c.build.module();
  m[out.id().instruction].name = m.producer(c.in(i).id()).name;
  return out;
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
  if (!data) data = with_extents(c, 1, packed);
  const value scale = with_extents(c, 2, {columns, blocks});
  if (!c.has(3)) {
    stored.zero = 1 << (bits - 1);
    return {product(add_unfolded(c, stored, data, scale))};
  }
  const std::int64_t zeros = is_float(c.in(3).type()) ? blocks : (blocks * bits + 7) / 8;
  return {product(add_unfolded(c, stored, data, scale, with_extents(c, 3, {columns, zeros})))};
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

std::span<const op_importer> microsoft_block_importers() {
  static constexpr op_importer table[] = {
      {microsoft, "GatherBlockQuantized", 1, import_gather_block_quantized},
      {microsoft, "MatMulBnb4", 1, import_matmul_bnb4},
      {microsoft, "MatMulNBits", 1, import_matmul_n_bits, "2, 4 and 8 bits"},
  };
  return table;
}

}  // namespace kiln::onnx

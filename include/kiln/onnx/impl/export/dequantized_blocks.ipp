#include "kiln/onnx/impl/export/stored_weights.hpp"

#include <algorithm>

#include "kiln/onnx/impl/export/exporter.hpp"
#include "kiln/op/quant/block_dequantize.hpp"

// Numbers in blocks as DequantizeLinear with a block_size. It has an element type for each number of bits and knows no
// packed bytes, so that what is packed must be constant: its fields are written one by one.
namespace kiln::onnx {

namespace {

const literal* literal_of(const module_graph& m, value_id v) {
  const auto& from = m.producer(v);
  return from.kind == instruction_kind::literal && !from.constant.has_symbols() ? &from.constant : nullptr;
}
dtype field_type(std::int64_t bits, bool has_sign) {
  return bits == 8   ? has_sign ? dtype::i8 : dtype::u8
         : bits == 4 ? has_sign ? dtype::i4 : dtype::u4
         : has_sign  ? dtype::i2
                     : dtype::u2;
}

// The fields of rows of bytes less `zero`, `lens` of them, in memory one a byte; of a matrix, perhaps transposed.
literal unpacked_fields(const literal& l, std::int64_t bits, const dims& lens, std::int64_t zero, dtype as,
                        bool transposed) {
  const std::int64_t each = fields_per_byte(bits), columns = lens[lens.size() - 1].value(),
                     rows = columns == 0 ? 0 : product(lens).value() / columns,
                     row_bytes = l.get_shape().lens[lens.size() - 1].value();
  const unsigned mask = (1u << bits) - 1;
  buffer out = buffer::allocate(static_cast<std::size_t>(rows * columns));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < columns; ++k) {
      const auto byte = std::to_integer<unsigned>(l.bytes()[r * row_bytes + k / each]);
      const unsigned field = byte >> (k % each * bits) & mask;
      out.data()[transposed ? k * rows + r : r * columns + k] =
          static_cast<std::byte>((field - static_cast<unsigned>(zero)) & mask);
    }
  return literal({as, transposed ? dims{columns, rows} : lens}, std::move(out));
}
literal transposed_matrix(const literal& l) {
  const std::int64_t rows = l.get_shape().lens[0].value(), columns = l.get_shape().lens[1].value();
  const std::size_t bytes = size_of(l.get_shape().type);
  buffer out = buffer::allocate(static_cast<std::size_t>(rows * columns) * bytes);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < columns; ++k)
      std::memcpy(out.data() + static_cast<std::size_t>(k * rows + r) * bytes,
                  l.bytes() + static_cast<std::size_t>(r * columns + k) * bytes, bytes);
  return literal({l.get_shape().type, {columns, rows}}, std::move(out));
}

// Whether an instruction transposes a constant matrix of packed numbers: it is written the other way round, as products
// read it, so that no Transpose stands between.
bool turns_blocks(const module_graph& m, std::uint32_t i) {
  const auto* const turn = m[i].kind == instruction_kind::op ? m[i].op.get_if<op::transpose>() : nullptr;
  if (!turn || m[i].results[0].rank() != 2 || (!turn->permutation.empty() && normal_axis(turn->permutation[0], 2) != 1))
    return false;
  const value_id from = m[i].inputs[0];
  if (!is_dequantized_in_blocks(m, from.instruction)) return false;
  const auto& in = m.producer(from).inputs;
  return m.shape_of(in[0]).type == dtype::u8 &&
         std::all_of(in.begin(), in.end(), [&](value_id v) { return literal_of(m, v) != nullptr; });
}

}  // namespace

bool is_dequantized_in_blocks(const module_graph& m, std::uint32_t i) {
  const auto* const o = m[i].kind == instruction_kind::op ? m[i].op.get_if<op::block_dequantize>() : nullptr;
  if (!o) return false;
  const auto& in = m[i].inputs;
  const shape& data = m.shape_of(in[0]);
  if (!is_integer(data.type) || o->floats || o->factor != 1 || is_narrow(m.shape_of(in[1]).type)) return false;
  if (in.size() > 2 && is_float(m.shape_of(in[2]).type)) return false;
  const bool is_plain = o->bits == 8 && o->extent == 0 && o->zero == 0;
  const bool is_known = data.type == dtype::u8 && literal_of(m, in[0]) && m.shape_of(in[0]).is_constant() &&
                        (in.size() < 3 || literal_of(m, in[2]));
  return is_plain || is_known;
}

void exporter::write_dequantized_blocks(const exported& e, std::uint32_t numbers, bool transposed) {
  const module_graph& m = *e.home;
  const auto& o = *m[numbers].op.get_if<op::block_dequantize>();
  const auto& in = m[numbers].inputs;
  const shape& scale = m.shape_of(in[1]);
  const std::int64_t axis = normal_axis(o.axis, m.shape_of(in[0]).rank());
  need(dtype::i4);  // blocks came with these
  names inputs;
  const std::string_view of = m.producer(in[0]).name.view();
  if (o.bits == 8 && o.extent == 0 && o.zero == 0 && !transposed) {
    for (const value_id v : in) inputs.push_back(e.name_of(v));
  } else {
    // zero points in the middle are those of signed numbers, others are written for each block
    const std::int64_t middle = std::int64_t{1} << (o.bits - 1);
    const bool has_sign = in.size() < 3 && o.zero == middle;
    const dtype as = field_type(o.bits, has_sign);
    need(as);
    const auto fields = [&](value_id v, const dims& lens) {
      return unpacked_fields(*literal_of(m, v), o.bits, lens, has_sign ? middle : 0, as, transposed);
    };
    inputs.push_back(constant(fields(in[0], m[numbers].results[0].lens), of, "_DQ_Q4"));
    const literal* const scales = literal_of(m, in[1]);
    inputs.push_back(!scales ? e.name_of(in[1])
                             : constant(transposed ? transposed_matrix(*scales) : *scales, of, "_DQ_scales"));
    if (in.size() > 2) {
      inputs.push_back(constant(fields(in[2], scale.lens), of, "_DQ_zero_points"));
    } else if (o.zero != 0 && !has_sign) {
      const dims lens = transposed ? dims{scale.lens[1], scale.lens[0]} : scale.lens;
      const std::vector<std::int64_t> each(static_cast<std::size_t>(product(lens).value()), o.zero);
      inputs.push_back(constant(literal::of<std::int64_t>({as, lens}, each), of, "_DQ_zero_points"));
    }
  }
  write("DequantizeLinear", inputs, e.out).set("axis", transposed ? 1 - axis : axis).set("block_size", o.block);
}

bool exporter::write_blocks(const exported& e) {
  const module_graph& m = *e.home;
  if (is_dequantized_in_blocks(m, e.at)) {
    bool is_read = std::any_of(m.outputs.begin(), m.outputs.end(), [&](value_id v) { return v.instruction == e.at; });
    for (std::uint32_t u = 0; u < m.size() && !is_read; ++u)
      for (const value_id v : m[u].inputs) is_read = is_read || (v.instruction == e.at && !turns_blocks(m, u));
    if (is_read) write_dequantized_blocks(e, e.at, false);
    return true;
  }
  if (!turns_blocks(m, e.at)) return false;
  write_dequantized_blocks(e, m[e.at].inputs[0].instruction, true);
  return true;
}

}  // namespace kiln::onnx

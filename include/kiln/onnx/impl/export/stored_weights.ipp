#include "kiln/onnx/impl/export/stored_weights.hpp"

#include <algorithm>
#include <bit>

#include "kiln/graph/user_lists.hpp"
#include "kiln/onnx/impl/export/exporter.hpp"
#include "kiln/op/index/gather.hpp"
#include "kiln/op/linear/dot.hpp"
#include "kiln/op/quant/range.hpp"
#include "kiln/pass/stored_weights.hpp"

namespace kiln::onnx {

namespace {

template <class Op> const Op* op_of(const module_graph& m, std::uint32_t i) {
  return m[i].kind == instruction_kind::op ? m[i].op.get_if<Op>() : nullptr;
}
const literal* literal_of(const module_graph& m, value_id v) {
  const auto& from = m.producer(v);
  return from.kind == instruction_kind::literal ? &from.constant : nullptr;
}

// Whether the operators take this form: unsigned fields of constants, rows of whole blocks, the usual zero point.
bool has_operator(const module_graph& m, std::uint32_t i) {
  const auto& o = *op_of<op::block_dequantize>(m, i);
  const auto& in = m[i].inputs;
  for (const value_id v : in)
    if (!literal_of(m, v) || literal_of(m, v)->has_symbols()) return false;
  const shape &data = m.shape_of(in[0]), &result = m[i].results[0];
  if (o.floats || o.factor != 1 || data.type != dtype::u8 || data.rank() != 2 || normal_axis(o.axis, 2) != 1 ||
      result.type != dtype::f32)
    return false;
  const std::int64_t depth = result.lens[1].value(), blocks = (depth + o.block - 1) / o.block;
  const bool is_power = o.block >= 16 && std::has_single_bit(static_cast<std::uint64_t>(o.block));
  if (!is_power || !(data.lens[1] == dimension(blocks * o.block * o.bits / 8))) return false;
  return in.size() == 3 || o.zero == (1 << (o.bits - 1));
}

// Whether DequantizeLinear takes this form.
bool are_single_floats(const module_graph& m, std::uint32_t i) {
  const auto* o = op_of<op::block_dequantize>(m, i);
  const auto& in = m[i].inputs;
  return o && o->bits == 8 && o->extent == 0 && in.size() == 2 && is_float(m.shape_of(in[0]).type) &&
         literal_of(m, in[0]) && literal_of(m, in[1]);
}

// Packed f4e2m1 [rows..., bytes] as elements.
literal single_floats(const literal& packed, std::int64_t columns) {
  dims lens = packed.get_shape().lens;
  const std::int64_t row_bytes = lens[lens.size() - 1].value();
  lens[lens.size() - 1] = columns;
  const std::int64_t rows = row_bytes == 0 ? 0 : packed.elements() / row_bytes;
  buffer out = buffer::allocate(static_cast<std::size_t>(rows * columns));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < columns; ++k)
      out.data()[r * columns + k] = packed.bytes()[r * row_bytes + k / 2] >> (k % 2 * 4) & std::byte{15};
  return literal({dtype::f4e2m1, lens}, std::move(out));
}

// The numbers that a product or a gather reads, or nothing. What is between is views.
std::optional<std::uint32_t> numbers_read(const module_graph& m, std::uint32_t i) {
  if (op_of<op::dot>(m, i)) {
    const auto found = find_stored_weights(m, m[i].inputs[1]);
    if (!found || !found->depth_last || found->in_blocks) return std::nullopt;
    const std::uint32_t numbers = found->instructions[found->instructions.size() - 1];
    return has_operator(m, numbers) ? std::optional(numbers) : std::nullopt;
  }
  const auto* gather = op_of<op::gather>(m, i);
  if (!gather) return std::nullopt;
  const value_id from = m[i].inputs[0];
  const auto* stored = op_of<op::block_dequantize>(m, from.instruction);
  if (!stored || !has_operator(m, from.instruction) || normal_axis(gather->axis, 2) != 0) return std::nullopt;
  const bool packed_zeros =
      m.producer(from).inputs.size() < 3 || !is_float(m.shape_of(m.producer(from).inputs[2]).type);
  return packed_zeros && stored->extent == 0 ? std::optional(from.instruction) : std::nullopt;
}

}  // namespace

stored_readers::stored_readers(const module_graph& m, bool wanted) : skipped_(m.size(), false) {
  if (!wanted) return;
  std::map<std::uint32_t, std::uint32_t> found;
  for (std::uint32_t i = 0; i < m.size(); ++i)
    if (const auto numbers = numbers_read(m, i)) found[i] = *numbers;
  if (found.empty()) return;
  const user_lists users(m);
  // from readers back to what they alone read
  const auto order = m.order();
  std::vector<bool> leads(m.size(), false);
  for (const auto& [reader, numbers] : found) {
    leads[numbers] = true;
    for (std::uint32_t v = m[reader].inputs[op_of<op::dot>(m, reader) ? 1 : 0].instruction; v != numbers;
         v = m[v].inputs[0].instruction)
      leads[v] = true;
    for (const value_id v : m[numbers].inputs) leads[v.instruction] = true;
  }
  for (std::size_t k = order.size(); k-- > 0;) {
    const std::uint32_t i = order[k];
    if (!leads[i]) continue;
    bool only = true;
    for (const std::uint32_t u : users[i]) {
      if (u == user_lists::output_user) {
        only = false;
        break;
      }
      const bool reads_matrix =
          found.contains(u) && m[u].inputs[op_of<op::dot>(m, u) ? 1 : 0].instruction == i &&
          std::count_if(m[u].inputs.begin(), m[u].inputs.end(), [&](value_id v) { return v.instruction == i; }) == 1;
      only = only && (skipped_[u] || reads_matrix);
    }
    skipped_[i] = only;
  }
  for (const auto& [reader, numbers] : found)
    if (skipped_[numbers]) readers_.emplace(reader, numbers);
}

small_vector<std::uint32_t> written_in_blocks(const module_graph& m) {
  const stored_readers readers(m);
  small_vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < m.size(); ++i)
    if (is_dequantized_in_blocks(m, i) || are_single_floats(m, i) ||
        (readers.skips(i) && op_of<op::block_dequantize>(m, i)))
      out.push_back(i);
  return out;
}

std::optional<program> with_single_floats(const program& p) {
  std::optional<program> out;
  for (std::uint32_t k = 0; k < p.modules(); ++k)
    for (std::uint32_t i = 0; i < p.module({k}).size(); ++i) {
      const module_graph& m = p.module({k});
      const auto* found = op_of<op::block_dequantize>(m, i);
      if (!found || !found->floats || !literal_of(m, m[i].inputs[0])) continue;
      op::block_dequantize single = *found;
      single.bits = 8, single.extent = 0, single.floats = false;
      if (!out) out = p;
      module_graph& to = out->module({k});
      const auto& result = m[i].results[0];
      const value_id numbers =
          to.add_literal(single_floats(*literal_of(m, m[i].inputs[0]), result.lens[result.rank() - 1].value()));
      to[i].op = operation(single);
      to[i].inputs[0] = numbers;
    }
  for (std::uint32_t k = 0; out && k < p.modules(); ++k) out->module({k}).compact();
  return out;
}

void write_block_dequantize(exporter& x, const exported& e) {
  const auto& o = e.as<op::block_dequantize>();
  const shape &data = e.types[0], &scale = e.types[1];
  const std::int64_t axis = normal_axis(o.axis, data.rank());
  const bool whole = data.rank() == 2 && scale.lens[static_cast<std::size_t>(axis)] == dimension(1);
  std::string scales = e.in[1];
  // a scale for each row or column
  if (whole) scales = x.constant(e.constant(1)->reshaped({scale.lens[static_cast<std::size_t>(1 - axis)]}));
  if (quantize::is_float8(scale.type))
    scales = x.make("DequantizeLinear", {scales, x.scalar(dtype::f32, o.factor)});
  else if (is_narrow(scale.type))
    scales = x.cast(scales, dtype::f32);
  if (o.factor != 1 && !quantize::is_float8(scale.type))
    scales = x.make("Mul", {scales, x.scalar(is_narrow(scale.type) ? dtype::f32 : scale.type, o.factor)});
  auto n = x.write("DequantizeLinear", {e.in[0], scales}, e.out);
  n.set("axis", whole ? 1 - axis : axis);
  if (!whole) n.set("block_size", o.block);
}

void exporter::write_stored(const exported& e, std::uint32_t numbers) {
  const module_graph& m = *e.home;
  const auto& o = *op_of<op::block_dequantize>(m, numbers);
  const auto& in = m[numbers].inputs;
  const bool is_product = e.op.is<op::dot>();
  const shape& result = m[numbers].results[0];
  const std::int64_t columns = result.lens[0].value(), depth = result.lens[1].value(),
                     blocks = (depth + o.block - 1) / o.block;
  auto& named = stored_[{&m, numbers, is_product}];
  if (named.empty()) {
    for (std::size_t k = 0; k < in.size(); ++k) {
      const literal& l = *literal_of(m, in[k]);
      constexpr std::string_view what[] = {"_Q4", "_scales", "_zero_points"};
      named.push_back(constant(k == 0 && is_product ? l.reshaped({columns, blocks, o.block * o.bits / 8}) : l,
                               m.producer(in[0]).name.view(), what[k]));
    }
  }
  names inputs{is_product ? e.in[0] : named[0], is_product ? named[0] : e.in[1], named[1]};
  if (in.size() == 3) inputs.push_back(named[2]);
  auto n = write(is_product ? "MatMulNBits" : "GatherBlockQuantized", inputs, e.out).of_domain("com.microsoft");
  n.set("bits", o.bits).set("block_size", o.block);
  if (!is_product) {
    n.set("gather_axis", std::int64_t{0}).set("quantize_axis", std::int64_t{1});
    return;
  }
  n.set("K", depth).set("N", columns);
  if (o.bytes_suffice) n.set("accuracy_level", std::int64_t{4});
}

}  // namespace kiln::onnx

#include "kiln/onnx/impl/export/stored_weights.hpp"

#include <algorithm>
#include <bit>

#include "kiln/graph/user_lists.hpp"
#include "kiln/onnx/impl/export/exporter.hpp"
#include "kiln/op/index/gather.hpp"
#include "kiln/op/linear/dot.hpp"
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
  if (data.type != dtype::u8 || data.rank() != 2 || normal_axis(o.axis, 2) != 1 || result.type != dtype::f32)
    return false;
  const std::int64_t depth = result.lens[1].value(), blocks = (depth + o.block - 1) / o.block;
  const bool is_power = o.block >= 16 && std::has_single_bit(static_cast<std::uint64_t>(o.block));
  if (!is_power || !(data.lens[1] == dimension(blocks * o.block * o.bits / 8))) return false;
  return in.size() == 3 || o.zero == (1 << (o.bits - 1));
}

// The numbers that a product or a gather reads, or nothing. What is between is views.
std::optional<std::uint32_t> numbers_read(const module_graph& m, std::uint32_t i) {
  if (op_of<op::dot>(m, i)) {
    const auto found = find_stored_weights(m, m[i].inputs[1]);
    if (!found || !found->depth_last) return std::nullopt;
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
    if (is_dequantized_in_blocks(m, i) || (readers.skips(i) && op_of<op::block_dequantize>(m, i))) out.push_back(i);
  return out;
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

#include <algorithm>

#include "kiln/onnx/impl/ops/bodies.hpp"
#include "kiln/onnx/impl/ops/dynamic_axes.hpp"
#include "kiln/op/dynamic/sequence.hpp"

// Sequences with a known length and known positions need no ops; others are values of dtype sequence.
namespace kiln::onnx {

namespace {

using items = small_vector<value>;

// Whether the items and the position are known.
bool known(const node_context& c, std::size_t position) {
  if (!c.has(0)) c.malformed("input 0 is missing");
  const literal* at = c.constant(position);
  return c.inputs[0].is_sequence && (!c.has(position) || (at && !at->has_symbols()));
}

// The operands of an operator on a sequence that only a run knows.
small_vector<value> run_time_operands(node_context& c) {
  small_vector<value> out{c.sequence_value(0)};
  for (std::size_t i = 1; i < c.size(); ++i)
    if (c.has(i)) out.push_back(c.in(i));
  return out;
}

// A position in [-length, limit), the last one by default.
std::size_t position(const node_context& c, std::size_t input, std::size_t length, std::int64_t limit,
                     std::int64_t otherwise) {
  std::int64_t at = otherwise;
  if (c.has(input)) {
    at = c.number(input, "the position");
    if (at < 0) at += static_cast<std::int64_t>(length);
  }
  if (at < 0 || at >= limit)
    c.malformed("position " + std::to_string(at) + " is outside a sequence of " + std::to_string(length));
  return static_cast<std::size_t>(at);
}

variables import_construct(node_context& c) {
  items all;
  for (std::size_t i = 0; i < c.size(); ++i) {
    all.push_back(c.in(i));
    joined_items(c, item_of(all[0]), item_of(all[i]));
  }
  return {variable::sequence(std::move(all))};
}
variables import_empty(node_context& c) {
  variable none = variable::sequence({});
  none.item = {c.type_attribute("dtype", dtype::f32), item_type::none};
  return {none};
}
variables import_at(node_context& c) {
  if (!known(c, 1)) {
    return {extracted_item(c, items_of(c.inputs[0]), run_time_operands(c), [](const shape& s) {
      return op::sequence_at{s.type, s.lens};
    })};
  }
  const items& all = c.sequence(0);
  const auto n = static_cast<std::int64_t>(all.size());
  return {all[position(c, 1, all.size(), n, n - 1)]};
}
variables import_insert(node_context& c) {
  const item_type item = joined_items(c, items_of(c.inputs[0]), item_of(c.in(1)));
  if (!known(c, 2)) return {variable(c.build.add(op::sequence_insert{}, run_time_operands(c)), item)};
  items all = c.sequence(0);
  const auto n = static_cast<std::int64_t>(all.size());
  all.insert(position(c, 2, all.size(), n + 1, n), c.in(1));
  return {variable::sequence(std::move(all))};
}
variables import_erase(node_context& c) {
  if (!known(c, 1)) return {variable(c.build.add(op::sequence_erase{}, run_time_operands(c)), items_of(c.inputs[0]))};
  items all = c.sequence(0);
  const auto n = static_cast<std::int64_t>(all.size());
  all.erase(position(c, 1, all.size(), n, n - 1));
  return {variable::sequence(std::move(all))};
}
variables import_length(node_context& c) {
  if (!known(c, 1)) return {c.build.add(op::sequence_length{}, run_time_operands(c))};
  return {c.build.scalar(dtype::i64, static_cast<std::int64_t>(c.sequence(0).size()))};
}

variables import_split_to(node_context& c) {
  const value x = c.in(0);
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), x.rank());
  const dimension extent = x.dim(axis);
  const literal* given_sizes = c.constant(1);
  if ((c.has(1) && (!given_sizes || given_sizes->has_symbols())) || (!extent.is_constant() && !c.has(1)) ||
      (!extent.is_constant() && c.in(1).rank() == 0)) {
    const bool keeps = c.has(1) || c.flag("keepdims", true);
    const op::split_sequence split{axis, keeps};
    const value parts = c.has(1) ? c.build.add(split, x, c.in(1)) : c.build.add(split, x);
    return {variable(parts, {x.type(), static_cast<int>(x.rank()) - (keeps ? 0 : 1)})};
  }
  small_vector<dimension> sizes;
  bool drops = false;
  if (c.has(1) && c.in(1).rank() == 1) {
    sizes = c.dimensions(1, "the parts' sizes");
  } else {
    const std::int64_t size = c.has(1) ? c.number(1, "the parts' size") : 1;
    if (size < 1) c.malformed("a part's size is positive");
    drops = !c.has(1) && !c.flag("keepdims", true);
    const std::int64_t whole = extent.value() / size, left = extent.value() % size;
    constexpr std::int64_t most_parts = 65536;  // each becomes an instruction
    if (whole > most_parts)
      raise(errc::limit, "a split into a sequence has at most " + std::to_string(most_parts) + " parts, found " +
                             std::to_string(whole));
    for (std::int64_t k = 0; k < whole; ++k) sizes.push_back(size);
    if (left > 0) sizes.push_back(left);
  }
  items parts;
  dimension from = 0;
  for (const dimension n : sizes) {
    const value part = x.slice({{axis}, {from}, {from + n}, {}});
    parts.push_back(drops ? part.squeeze({axis}) : part);
    from += n;
  }
  return {variable::sequence(std::move(parts))};
}

variables import_concat_from(node_context& c) {
  if (!known(c, 1)) {
    item_type item = items_of(c.inputs[0]);
    const bool stacks = c.flag("new_axis");
    if (item.rank >= 0 && stacks) ++item.rank;
    return {extracted_item(c, item, run_time_operands(c), [&](const shape& s) {
      return op::join_sequence{c.integer("axis", 0), stacks, s.type, s.lens};
    })};
  }
  items parts = c.sequence(0);
  if (parts.empty()) c.malformed("there is nothing to concatenate");
  const bool fresh = c.flag("new_axis");
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), parts[0].rank() + (fresh ? 1 : 0));
  if (fresh)
    for (value& p : parts) p = p.unsqueeze({axis});
  return {concatenated(c, axis, std::move(parts))};
}

}  // namespace

std::span<const op_importer> sequence_importers() {
  static constexpr op_importer table[] = {
      {"", "ConcatFromSequence", 11, import_concat_from},
      {"", "SequenceAt", 11, import_at},
      {"", "SequenceConstruct", 11, import_construct},
      {"", "SequenceEmpty", 11, import_empty},
      {"", "SequenceErase", 11, import_erase},
      {"", "SequenceInsert", 11, import_insert},
      {"", "SequenceLength", 11, import_length},
      {"", "SplitToSequence", 11, import_split_to},
  };
  return table;
}

}  // namespace kiln::onnx

#include <algorithm>

#include "kiln/onnx/impl/parse_body.hpp"
#include "kiln/onnx/impl/run_axes.hpp"
#include "kiln/op/dynamic/sequence.hpp"

// Sequences whose length and positions are known while importing only pass tensors on; others are values of the run.
namespace kiln::onnx {

namespace {

using items = small_vector<value>;

// Whether items and position are known now.
bool known(const call& c, std::size_t position) {
  if (!c.has(0)) c.malformed("input 0 is missing");
  const literal* at = c.constant(position);
  return c.inputs[0].is_sequence && (!c.has(position) || (at && !at->has_symbols()));
}

variable sequence_of(value v, item_type item) { return variable(v, item); }

// A sequence that only the run knows, and the other operands of an operator on it.
small_vector<value> run_time_operands(call& c) {
  small_vector<value> out{c.sequence_value(0)};
  for (std::size_t i = 1; i < c.size(); ++i)
    if (c.has(i)) out.push_back(c.in(i));
  return out;
}

// A position in [-length, limit), the last one by default.
std::size_t position(const call& c, std::size_t input, std::size_t length, std::int64_t limit, std::int64_t otherwise) {
  std::int64_t at = otherwise;
  if (c.has(input)) {
    const auto given = c.numbers(input, "the position");
    if (given.size() != 1) c.malformed("a position is one number");
    at = given[0] < 0 ? given[0] + static_cast<std::int64_t>(length) : given[0];
  }
  if (at < 0 || at >= limit)
    c.malformed("position " + std::to_string(at) + " lies outside a sequence of " + std::to_string(length));
  return static_cast<std::size_t>(at);
}

variables parse_construct(call& c) {
  items all;
  for (std::size_t i = 0; i < c.size(); ++i) {
    all.push_back(c.in(i));
    joined_items(c, item_of(all[0]), item_of(all[i]));
  }
  return {variable::sequence(std::move(all))};
}
variables parse_empty(call& c) {
  const auto t = to_dtype(static_cast<element>(c.integer("dtype", 1)));
  if (!t) c.unsupported("a sequence of this dtype");
  variable none = variable::sequence({});
  none.item = {*t, item_type::none};
  return {none};
}
variables parse_at(call& c) {
  if (!known(c, 1)) {
    return {taken_out(c, items_of(c.inputs[0]), run_time_operands(c), [](const shape& s) {
      return op::sequence_at{s.type, s.lens};
    })};
  }
  const items& all = c.sequence(0);
  const auto n = static_cast<std::int64_t>(all.size());
  return {all[position(c, 1, all.size(), n, n - 1)]};
}
variables parse_insert(call& c) {
  const item_type item = joined_items(c, items_of(c.inputs[0]), item_of(c.in(1)));
  if (!known(c, 2)) return {sequence_of(c.build.add(op::sequence_insert{}, run_time_operands(c)), item)};
  items all = c.sequence(0);
  const auto n = static_cast<std::int64_t>(all.size());
  all.insert(position(c, 2, all.size(), n + 1, n), c.in(1));
  return {variable::sequence(std::move(all))};
}
variables parse_erase(call& c) {
  if (!known(c, 1))
    return {sequence_of(c.build.add(op::sequence_erase{}, run_time_operands(c)), items_of(c.inputs[0]))};
  items all = c.sequence(0);
  const auto n = static_cast<std::int64_t>(all.size());
  all.erase(position(c, 1, all.size(), n, n - 1));
  return {variable::sequence(std::move(all))};
}
variables parse_length(call& c) {
  if (!known(c, 1)) return {c.build.add(op::sequence_length{}, run_time_operands(c))};
  return {c.build.scalar(dtype::i64, static_cast<std::int64_t>(c.sequence(0).size()))};
}

variables parse_split_to(call& c) {
  const value x = c.in(0);
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), x.rank());
  const dimension extent = x.dim(axis);
  const literal* given_sizes = c.constant(1);
  if ((c.has(1) && (!given_sizes || given_sizes->has_symbols())) || (!extent.is_constant() && !c.has(1)) ||
      (!extent.is_constant() && c.in(1).rank() == 0)) {
    const bool keeps = c.has(1) || c.flag("keepdims", true);
    const op::split_sequence split{axis, keeps};
    const value parts = c.has(1) ? c.build.add(split, x, c.in(1)) : c.build.add(split, x);
    return {sequence_of(parts, {x.type(), static_cast<int>(x.rank()) - (keeps ? 0 : 1)})};
  }
  small_vector<dimension> sizes;
  bool drops = false;
  if (c.has(1) && c.in(1).rank() == 1) {
    sizes = c.dimensions(1, "the parts' sizes");
  } else {
    const auto given = c.has(1) ? c.numbers(1, "the parts' size") : small_vector<std::int64_t>{1};
    if (given.size() != 1 || given[0] < 1) c.malformed("a part's size is positive");
    drops = !c.has(1) && !c.flag("keepdims", true);
    const std::int64_t whole = extent.value() / given[0], left = extent.value() % given[0];
    constexpr std::int64_t most_parts = 65536;  // each becomes an instruction
    if (whole > most_parts)
      raise(errc::limit, "a split into a sequence has at most " + std::to_string(most_parts) + " parts, found " +
                             std::to_string(whole));
    for (std::int64_t k = 0; k < whole; ++k) sizes.push_back(given[0]);
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

variables parse_concat_from(call& c) {
  if (!known(c, 1)) {
    item_type item = items_of(c.inputs[0]);
    const bool stacks = c.flag("new_axis");
    if (item.rank >= 0 && stacks) ++item.rank;
    return {taken_out(c, item, run_time_operands(c), [&](const shape& s) {
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

std::span<const row> sequence_rows() {
  static constexpr row rows[] = {
      {"", "ConcatFromSequence", 11, parse_concat_from},
      {"", "SequenceAt", 11, parse_at},
      {"", "SequenceConstruct", 11, parse_construct},
      {"", "SequenceEmpty", 11, parse_empty},
      {"", "SequenceErase", 11, parse_erase},
      {"", "SequenceInsert", 11, parse_insert},
      {"", "SequenceLength", 11, parse_length},
      {"", "SplitToSequence", 11, parse_split_to},
  };
  return rows;
}

}  // namespace kiln::onnx

#include <algorithm>

#include "kiln/onnx/impl/parse.hpp"

// Sequences whose length is known while importing: their operators only pass tensors on.
namespace kiln::onnx {

namespace {

using items = small_vector<value>;

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
  for (std::size_t i = 0; i < c.size(); ++i) all.push_back(c.in(i));
  return {variable::sequence(std::move(all))};
}
variables parse_empty(call&) { return {variable::sequence({})}; }
variables parse_at(call& c) {
  const items& all = c.sequence(0);
  const auto n = static_cast<std::int64_t>(all.size());
  return {all[position(c, 1, all.size(), n, n - 1)]};
}
variables parse_insert(call& c) {
  items all = c.sequence(0);
  const auto n = static_cast<std::int64_t>(all.size());
  all.insert(position(c, 2, all.size(), n + 1, n), c.in(1));
  return {variable::sequence(std::move(all))};
}
variables parse_erase(call& c) {
  items all = c.sequence(0);
  const auto n = static_cast<std::int64_t>(all.size());
  all.erase(position(c, 1, all.size(), n, n - 1));
  return {variable::sequence(std::move(all))};
}
variables parse_length(call& c) {
  return {c.build.scalar(dtype::i64, static_cast<std::int64_t>(c.sequence(0).size()))};
}

variables parse_split_to(call& c) {
  const value x = c.in(0);
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), x.rank());
  const dimension extent = x.dim(axis);
  small_vector<dimension> sizes;
  bool drops = false;
  if (c.has(1) && c.in(1).rank() == 1) {
    sizes = c.dimensions(1, "the parts' sizes");
  } else {
    if (!extent.is_constant()) c.unsupported("splits an extent of " + kiln::to_string(extent) + " into parts");
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
  items parts = c.sequence(0);
  if (parts.empty()) c.malformed("there is nothing to concatenate");
  const bool fresh = c.flag("new_axis");
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), parts[0].rank() + (fresh ? 1 : 0));
  if (fresh)
    for (value& p : parts) p = p.unsqueeze({axis});
  return {parts.size() == 1 ? parts[0] : c.build.add(op::concat{axis}, parts)};
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

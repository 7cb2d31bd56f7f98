#include <limits>

#include "kiln/onnx/impl/ops/dynamic_axes.hpp"
#include "kiln/tensorflow/impl/ops/common.hpp"

// Slices, splits and padding.
namespace kiln::tensorflow {

namespace {

constexpr std::int64_t farthest = std::numeric_limits<std::int64_t>::max(), first_of_all = -farthest;

value slice_by(node_context& c, value starts, value ends, const ints& axes, const ints& steps) {
  return as_onnx(c, "Slice",
                 {c.in(0), starts, ends, list_of(c, {axes.data(), axes.size()}),
                  list_of(c, {steps.data(), steps.size()})})[0]
      .tensor;
}

// Begins and sizes that are known lie within extents that are known.
void check_within(const node_context& c) {
  if (!c.constant(1) || !c.constant(2)) return;
  const auto begins = c.dimensions(1, "the begins"), sizes = c.dimensions(2, "the sizes");
  for (std::size_t d = 0; d < begins.size(); ++d) {
    if (!begins[d].is_constant() || !sizes[d].is_constant()) continue;
    const dimension extent = c.in(0).get_shape().lens[d];
    const std::int64_t begin = begins[d].value(), size = sizes[d].value(), most = extent.max();
    if (begin < 0 || begin > most || size < -1 || size > most - begin)
      c.malformed("a slice of " + std::to_string(size) + " from " + std::to_string(begin) +
                  " is outside an extent of " + kiln::to_string(extent));
  }
}
variables import_slice(node_context& c) {
  const std::size_t rank = c.in(0).rank();
  const value starts = c.in(1).convert(dtype::i64), sizes = c.in(2).convert(dtype::i64);
  for (const value v : {starts, sizes})
    if (!(v.get_shape().elements() == dimension(rank))) c.malformed("begin and size have a number for each dim");
  if (rank == 0) return {c.in(0)};
  check_within(c);
  const value rest = sizes.equal(c.build.scalar(dtype::i64, -1));
  return {slice_by(c, starts, rest.where(c.build.scalar(dtype::i64, farthest), starts + sizes), axes_from(0, rank),
                   ints(rank, 1))};
}

// What each entry of a strided slice does.
struct strided_entries {
  ints entries, axes, steps;           ///< of those that take a part of an axis
  ints dropped, added;                 ///< axes of the input that go, and axes of the result that come
  ints from_first, to_last, is_index;  ///< flags of the first three
};
strided_entries entries_of(const node_context& c, std::int64_t count, std::span<const std::int64_t> strides) {
  const auto mask = [&](std::string_view name) { return static_cast<std::uint64_t>(c.integer(name, 0)); };
  const std::uint64_t begin = mask("begin_mask"), end = mask("end_mask"), ellipsis = mask("ellipsis_mask"),
                      fresh = mask("new_axis_mask"), shrink = mask("shrink_axis_mask");
  const auto is_set = [](std::uint64_t m, std::int64_t i) { return (m >> i & 1) != 0; };
  const auto rank = static_cast<std::int64_t>(c.in(0).rank());
  std::int64_t taken = 0, ellipses = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_set(ellipsis, i)) ++ellipses;
    taken += !is_set(ellipsis, i) && !is_set(fresh, i);
  }
  if (ellipses > 1) c.malformed("a slice has at most one ellipsis");
  if (taken > rank) c.malformed("the slice takes " + std::to_string(taken) + " axes of " + std::to_string(rank));
  strided_entries out;
  std::int64_t axis = 0, made = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_set(ellipsis, i)) {
      axis += rank - taken;
      made += rank - taken;
    } else if (is_set(fresh, i)) {
      out.added.push_back(made++);
    } else {
      const bool index = is_set(shrink, i);
      const std::int64_t step = index ? 1 : strides[static_cast<std::size_t>(i)];
      if (step == 0) c.malformed("a stride is not 0");
      out.entries.push_back(i);
      out.axes.push_back(axis);
      out.steps.push_back(step);
      out.from_first.push_back(!index && is_set(begin, i));
      out.to_last.push_back(!index && is_set(end, i));
      out.is_index.push_back(index);
      if (index)
        out.dropped.push_back(axis);
      else
        ++made;
      ++axis;
    }
  }
  return out;
}

variables import_strided_slice(node_context& c) {
  const auto strides = c.numbers(3, "the list of strides");
  const auto count = static_cast<std::int64_t>(strides.size());
  for (const std::size_t i : {1, 2})
    if (!(c.in(i).get_shape().elements() == dimension(count))) c.malformed("begin, end and strides have one length");
  if (count > 32) c.malformed("the slice has " + std::to_string(count) + " entries");
  const strided_entries e = entries_of(c, count, onnx::as_span(strides));
  value y = c.in(0);
  if (const std::size_t n = e.entries.size()) {
    const value chosen = list_of(c, {e.entries.data(), n});
    const auto flags = [&](const ints& of) { return list_of(c, {of.data(), of.size()}).convert(dtype::boolean); };
    const auto number = [&](std::int64_t v) { return c.build.scalar(dtype::i64, v); };
    ints first, last;  // what a mask stands for
    for (const std::int64_t step : e.steps) {
      first.push_back(step > 0 ? 0 : farthest);
      last.push_back(step > 0 ? farthest : first_of_all);
    }
    const value begin = c.in(1).convert(dtype::i64).reshape({count}).gather(chosen),
                end = c.in(2).convert(dtype::i64).reshape({count}).gather(chosen);
    // an index is a slice of one element; that after the last is not 0
    const value after = begin.equal(number(-1)).where(number(farthest), begin + number(1));
    const value starts = flags(e.from_first).where(list_of(c, {first.data(), n}), begin);
    const value ends = flags(e.is_index).where(after, flags(e.to_last).where(list_of(c, {last.data(), n}), end));
    y = slice_by(c, starts, ends, e.axes, e.steps);
  }
  if (!e.dropped.empty()) y = as_onnx(c, "Squeeze", {y, list_of(c, {e.dropped.data(), e.dropped.size()})})[0].tensor;
  return {e.added.empty() ? y : y.unsqueeze(e.added)};
}

// The parts are all there is; where only a run can know that, it compares.
variables split_by(const node_context& c, value x, std::int64_t axis, std::span<const dimension> sizes) {
  dims lens = x.get_shape().lens;
  dimension& whole = lens[static_cast<std::size_t>(axis)];
  dimension sum = 0;
  for (const dimension n : sizes) sum += n;
  const auto agrees = same(whole, sum);
  if (agrees && !*agrees)
    c.malformed("the parts have " + kiln::to_string(sum) + " of an extent of " + kiln::to_string(whole));
  whole = sum;
  if (!agrees) x = x.expect_dims(lens);
  variables out;
  dimension from = 0;
  for (const dimension n : sizes) {
    if (n.max() < 0) c.malformed("a part of a split has no extent below 0");
    out.push_back(x.slice({{axis}, {from}, {from + n}, {}}));
    from += n;
  }
  return out;
}
variables import_split(node_context& c) {
  const value x = c.in(1);
  const std::int64_t axis = axis_within(c, c.number(0, "the axis"), x.rank()), count = c.integer("num_split", 0);
  if (count < 1 || count > 4096) c.malformed("num_split is " + std::to_string(count));
  const dimension extent = x.dim(axis);
  if (extent.is_constant() && extent.value() % count)
    c.malformed("an extent of " + kiln::to_string(extent) + " has no " + std::to_string(count) + " equal parts");
  return split_by(c, x, axis, small_vector<dimension>(static_cast<std::size_t>(count), extent / count));
}
variables import_split_v(node_context& c) {
  const value x = c.in(0);
  const std::int64_t axis = axis_within(c, c.number(2, "the axis"), x.rank());
  small_vector<dimension> sizes = c.dimensions(1, "the parts' sizes");
  dimension rest = x.dim(axis);
  std::ptrdiff_t open = -1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!(sizes[i] == dimension(-1))) {
      rest = rest - sizes[i];
      continue;
    }
    if (open >= 0) c.malformed("one part at most is what is left");
    open = static_cast<std::ptrdiff_t>(i);
  }
  if (open >= 0) sizes[static_cast<std::size_t>(open)] = rest;
  return split_by(c, x, axis, sizes);
}

// [rank, 2] as ONNX has it: all begins, then all ends.
value onnx_pads(node_context& c) {
  const auto rank = static_cast<std::int64_t>(c.in(0).rank());
  const value pads = c.in(1).convert(dtype::i64);
  if (pads.rank() != 2 || !(pads.dim(0) == dimension(rank)) || !(pads.dim(1) == dimension(2)))
    c.malformed("paddings has two numbers for each dim, found " + kiln::to_string(pads.get_shape()));
  return pads.transpose({1, 0}).reshape({2 * rank});
}
variables pad(node_context& c, std::string_view mode, variable fill) {
  if (c.in(0).rank() == 0) return {c.in(0)};
  return as_onnx(c, "Pad", {c.in(0), onnx_pads(c), fill}, {text_attribute("mode", mode)});
}
variables import_pad(node_context& c) { return pad(c, "constant", variable()); }
variables import_pad_2(node_context& c) { return pad(c, "constant", c.in(2)); }
// The parts beside an extent, in reverse: with its first and last element (SYMMETRIC), or those next to them.
variables import_mirror_pad(node_context& c) {
  require(c, "mode");
  const std::int64_t from = c.choice("mode", {"REFLECT", "SYMMETRIC"}) == "REFLECT" ? 1 : 0;
  value x = c.in(0);
  const auto pads = c.numbers(1, "the pads");
  if (pads.size() != 2 * x.rank()) c.malformed("paddings has two numbers for each dim");
  for (std::size_t d = 0; d < x.rank(); ++d) {
    const std::int64_t before = pads[2 * d], after = pads[2 * d + 1];
    if (before == 0 && after == 0) continue;
    const auto axis = static_cast<std::int64_t>(d);
    if (!x.dim(axis).is_constant()) c.unsupported("mirrors an extent of " + kiln::to_string(x.dim(axis)));
    const std::int64_t n = x.dim(axis).value();
    for (const std::int64_t p : {before, after})
      if (p < 0 || p > n - from)
        c.malformed("a mirrored pad is within the extent of " + std::to_string(n) + ", found " + std::to_string(p));
    const auto mirrored = [&](std::int64_t first, std::int64_t end) {
      return x.slice({{axis}, {first}, {end}, {}}) | op::reverse{{axis}};
    };
    small_vector<value> parts;
    if (before) parts.push_back(mirrored(from, from + before));
    parts.push_back(x);
    if (after) parts.push_back(mirrored(n - from - after, n - from));
    x = onnx::concatenated(c, axis, std::move(parts));
  }
  return {x};
}

}  // namespace

op_importer_table slice_importers() {
  static constexpr op_importer table[] = {
      {domain, "MirrorPad", 1, import_mirror_pad},
      {domain, "Pad", 1, import_pad},
      {domain, "PadV2", 1, import_pad_2},
      {domain, "Slice", 1, import_slice},
      {domain, "Split", 1, import_split},
      {domain, "SplitV", 1, import_split_v},
      {domain, "StridedSlice", 1, import_strided_slice},
  };
  return table;
}

}  // namespace kiln::tensorflow

#include "kiln/onnx/impl/parse.hpp"
#include "kiln/onnx/impl/run_axes.hpp"

// Operators that take parts of a tensor, or add to its borders.
namespace kiln::onnx {

namespace {

variables parse_slice_1(call& c) {
  const auto starts = c.integers("starts"), ends = c.integers("ends");
  return {c.in(0).slice({c.short_integers("axes"), to_dims(starts), to_dims(ends), {}})};
}
variables parse_slice(call& c) {
  if (is_open(c, 3) || is_open(c, 4)) return {slice_in_run(c, c.in(0))};
  const auto starts = c.positions(1, "the list of starts"), ends = c.positions(2, "the list of ends");
  op::slice s;
  if (c.has(3)) s.axes = ints(as_span(c.numbers(3, "the list of axes")));
  if (c.has(4)) s.steps = ints(as_span(c.numbers(4, "the list of steps")));
  s.starts = dims(std::span<const dimension>(starts));
  s.ends = dims(std::span<const dimension>(ends));
  return {c.in(0).slice(s)};
}

value part(value x, std::int64_t axis, dimension from, dimension to) { return x.slice({{axis}, {from}, {to}, {}}); }

variables split_by(value x, std::int64_t axis, std::span<const dimension> sizes) {
  variables out;
  dimension from = 0;
  for (const dimension n : sizes) {
    out.push_back(part(x, axis, from, from + n));
    from += n;
  }
  return out;
}
// Equal parts; the last one may be smaller where the operator allows it.
variables split_evenly(call& c, value x, std::int64_t axis, std::int64_t count) {
  if (count < 1) c.malformed("a split has at least one part");
  if (const std::size_t outputs = c.source.outputs.size(); static_cast<std::size_t>(count) > outputs)
    c.malformed("the node asks for " + std::to_string(count) + " parts and has " + std::to_string(outputs) +
                " outputs");
  const dimension extent = x.dim(axis), chunk = (extent + (count - 1)) / count;
  small_vector<dimension> sizes;
  for (std::int64_t k = 0; k + 1 < count; ++k) sizes.push_back(chunk);
  sizes.push_back(extent - chunk * (count - 1));
  if (sizes.back().max() < 0)
    c.malformed(std::to_string(count) + " parts of extent " + kiln::to_string(extent) + " leave none for the last");
  return split_by(x, axis, sizes);
}
variables split_checked(call& c, value x, std::int64_t axis, std::span<const dimension> sizes) {
  dimension sum = 0;
  for (const dimension n : sizes) sum += n;
  const auto equal = same(sum, x.dim(axis));
  if (equal && !*equal)
    c.malformed("the parts' sum is " + kiln::to_string(sum) + ", the axis' extent " + kiln::to_string(x.dim(axis)));
  if (!equal) {
    dims lens = x.get_shape().lens;
    lens[static_cast<std::size_t>(axis)] = sum;
    x = x.expect_dims(lens);
  }
  return split_by(x, axis, sizes);
}

variables parse_split_1(call& c) {
  const value x = c.in(0);
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), x.rank());
  small_vector<dimension> sizes;
  for (const std::int64_t n : c.integers("split")) sizes.push_back(n);
  if (sizes.empty() && c.has(1)) sizes = c.extents(1, "the parts' sizes");
  if (sizes.empty()) return split_evenly(c, x, axis, static_cast<std::int64_t>(c.source.outputs.size()));
  return split_checked(c, x, axis, sizes);
}
variables parse_split(call& c) {
  const value x = c.in(0);
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), x.rank());
  if (c.has(1)) return split_checked(c, x, axis, c.extents(1, "the parts' sizes"));
  return split_evenly(c, x, axis, c.integer("num_outputs", static_cast<std::int64_t>(c.source.outputs.size())));
}

value pad_by(call& c, std::span<const dimension> pads, const ints& axes, value constant) {
  const value x = c.in(0);
  const auto name = c.text("mode", "constant");
  op::pad p;
  if (name == "reflect")
    p.mode = op::pad_mode::reflect;
  else if (name == "edge")
    p.mode = op::pad_mode::edge;
  else if (name == "wrap")
    p.mode = op::pad_mode::wrap;
  else if (name != "constant")
    c.malformed("mode is '" + std::string(name) + "'");
  const std::size_t rank = x.rank(), n = axes.size();
  if (pads.size() != 2 * n) c.malformed("pads has a begin and an end for each axis");
  p.pads.resize(2 * rank, dimension(0));
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(axis_within(c, axes[i], rank));
    p.pads[at] = pads[i];
    p.pads[rank + at] = pads[n + i];
  }
  if (p.mode != op::pad_mode::constant || !constant) return x | p;
  return c.build.add(p, x, constant);
}
variables parse_pad_2(call& c) {
  small_vector<dimension> pads;
  for (const std::int64_t d : c.integers(c.version < 2 ? "paddings" : "pads")) pads.push_back(d);
  return {pad_by(c, pads, axes_from(0, c.in(0).rank()), c.build.scalar(c.in(0).type(), c.real("value", 0)))};
}
variables parse_pad(call& c) {
  if (is_open(c, 3)) {  // what is added to the axes named, among zeros for all
    const std::size_t rank = c.in(0).rank();
    const value axes = counted_axes(c, 3, rank), given = c.in(1).convert(dtype::i64);
    const auto n = axes.get_shape().lens[0];
    const value none = c.build.scalar(dtype::i64, 0).broadcast_to({static_cast<std::int64_t>(rank)});
    const auto spread = [&](dimension from) {
      return c.build.add(op::scatter_elements{0}, none, axes,
                         given.reshape({n * 2}).slice({{0}, {from}, {from + n}, {}}));
    };
    const auto pads = c.bound(spread(0).concat(spread(n), 0), "the list of pads", -call::farthest);
    return {pad_by(c, pads, axes_from(0, rank), c.has(2) ? c.in(2) : value())};
  }
  const auto pads = c.has(3) ? c.positions(1, "the list of pads")
                             : c.bound(listed(c.in(1), 2 * c.in(0).rank()), "the list of pads", -call::farthest);
  const ints axes = c.has(3) ? ints(as_span(c.numbers(3, "the list of axes"))) : axes_from(0, c.in(0).rank());
  return {pad_by(c, pads, axes, c.has(2) ? c.in(2) : value())};
}

variables parse_concat(call& c) {
  small_vector<value> parts;
  for (std::size_t i = 0; i < c.size(); ++i) parts.push_back(c.in(i));
  if (parts.empty()) c.malformed("there is nothing to concatenate");
  if (c.version >= 4 && !c.find("axis")) c.malformed("attribute 'axis' is missing");
  return {concatenated(c, c.integer("axis", 1), std::move(parts))};
}

// What is left within a border (left, top, right, bottom), or `scale` (height, width) of it from its first corner.
variables parse_crop(call& c) {
  const auto border = c.integers("border"), size = c.integers("scale");
  if (c.in(0).rank() != 4 || border.size() != 4 || (!size.empty() && size.size() != 2))
    c.malformed("the input has rank 4, border four numbers, and scale two");
  const dimension top = border[1], left = border[0];
  const dimension bottom = size.empty() ? c.in(0).dim(2) - border[3] : top + size[0],
                  right = size.empty() ? c.in(0).dim(3) - border[2] : left + size[1];
  for (const std::int64_t b : border)
    if (b < 0) c.malformed("a border is not negative");
  if ((c.in(0).dim(2) - bottom).max() < 0 || (c.in(0).dim(3) - right).max() < 0 || (bottom - top).max() < 0 ||
      (right - left).max() < 0)
    c.malformed("the crop lies within " + kiln::to_string(c.in(0).get_shape()));
  return {c.in(0).slice({{2, 3}, {top, left}, {bottom, right}, {}})};
}

}  // namespace

std::span<const row> slice_rows() {
  static constexpr std::string_view experimental = "experimental, no longer in the standard";
  static constexpr row rows[] = {
      {"", "Crop", 1, parse_crop, experimental},
      {"", "DynamicSlice", 1, parse_slice, experimental},
      {"", "Concat", 1, parse_concat},
      {"", "Pad", 1, parse_pad_2},
      {"", "Pad", 11, parse_pad},
      {"", "Slice", 1, parse_slice_1},
      {"", "Slice", 10, parse_slice},
      {"", "Split", 1, parse_split_1},
      {"", "Split", 13, parse_split},
  };
  return rows;
}

}  // namespace kiln::onnx

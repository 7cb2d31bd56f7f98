#include "kiln/onnx/impl/ops/common.hpp"
#include "kiln/onnx/impl/ops/dynamic_axes.hpp"

// Slices, splits, padding and concatenation.
namespace kiln::onnx {

namespace {

variables import_slice_1(node_context& c) {
  const auto starts = c.integers("starts"), ends = c.integers("ends");
  return {c.in(0).slice({c.short_integers("axes"), to_dims(starts), to_dims(ends), {}})};
}
variables import_slice(node_context& c) {
  if (c.is_dynamic(3) || c.is_dynamic(4)) return {dynamic_slice(c, c.in(0))};
  const auto starts = c.positions(1, "the list of starts"), ends = c.positions(2, "the list of ends");
  op::slice s;
  if (c.has(3)) s.axes = ints(as_span(c.numbers(3, "the list of axes")));
  if (c.has(4)) s.steps = ints(as_span(c.numbers(4, "the list of steps")));
  s.starts = dims(std::span<const dimension>(starts));
  s.ends = dims(std::span<const dimension>(ends));
  return {c.in(0).slice(s)};
}

variables split_by(value x, std::int64_t axis, std::span<const dimension> sizes) {
  variables out;
  dimension from = 0;
  for (const dimension n : sizes) {
    out.push_back(x.slice({{axis}, {from}, {from + n}, {}}));
    from += n;
  }
  return out;
}
// Equal parts; the last one may be smaller.
variables split_evenly(node_context& c, value x, std::int64_t axis, std::int64_t count) {
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
variables split_checked(node_context& c, value x, std::int64_t axis, std::span<const dimension> sizes) {
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

variables import_split_1(node_context& c) {
  const value x = c.in(0);
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), x.rank());
  small_vector<dimension> sizes;
  for (const std::int64_t n : c.integers("split")) sizes.push_back(n);
  if (sizes.empty() && c.has(1)) sizes = c.extents(1, "the parts' sizes");
  if (sizes.empty()) return split_evenly(c, x, axis, static_cast<std::int64_t>(c.source.outputs.size()));
  return split_checked(c, x, axis, sizes);
}
variables import_split(node_context& c) {
  const value x = c.in(0);
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), x.rank());
  if (c.has(1)) return split_checked(c, x, axis, c.extents(1, "the parts' sizes"));
  return split_evenly(c, x, axis, c.integer("num_outputs", static_cast<std::int64_t>(c.source.outputs.size())));
}

value pad_by(node_context& c, std::span<const dimension> pads, const ints& axes, value fill) {
  const value x = c.in(0);
  using enum op::pad_mode;
  op::pad p;
  p.mode = enum_attribute(c, "mode", {constant, reflect, edge, wrap});
  const std::size_t rank = x.rank(), n = axes.size();
  if (pads.size() != 2 * n) c.malformed("pads has a begin and an end for each axis");
  p.pads.resize(2 * rank, dimension(0));
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(axis_within(c, axes[i], rank));
    p.pads[at] = pads[i];
    p.pads[rank + at] = pads[n + i];
  }
  return p.mode == constant && fill ? c.build.add(p, x, fill) : x | p;
}
variables import_pad_2(node_context& c) {
  small_vector<dimension> pads;
  for (const std::int64_t d : c.integers(c.version < 2 ? "paddings" : "pads")) pads.push_back(d);
  return {pad_by(c, pads, axes_from(0, c.in(0).rank()), c.build.scalar(c.in(0).type(), c.real("value", 0)))};
}
variables import_pad(node_context& c) {
  if (c.is_dynamic(3)) {  // pads of the named axes, among zeros for all
    const std::size_t rank = c.in(0).rank();
    const value axes = normalized_axes(c, 3, rank), given = c.in(1).convert(dtype::i64);
    const auto n = axes.get_shape().lens[0];
    const value none = c.build.scalar(dtype::i64, 0).broadcast_to({static_cast<std::int64_t>(rank)});
    const auto spread = [&](dimension from) {
      return c.build.add(op::scatter_elements{0}, none, axes,
                         given.reshape({n * 2}).slice({{0}, {from}, {from + n}, {}}));
    };
    const auto pads = c.dimensions_of(spread(0).concat(spread(n), 0), "the list of pads", -node_context::farthest);
    return {pad_by(c, pads, axes_from(0, rank), c.optional_in(2))};
  }
  const auto pads =
      c.has(3) ? c.positions(1, "the list of pads")
               : c.dimensions_of(listed(c.in(1), 2 * c.in(0).rank()), "the list of pads", -node_context::farthest);
  return {pad_by(c, pads, axes_input(c, 3, c.in(0).rank()), c.optional_in(2))};
}

variables import_concat(node_context& c) {
  small_vector<value> parts;
  for (std::size_t i = 0; i < c.size(); ++i) parts.push_back(c.in(i));
  if (parts.empty()) c.malformed("there is nothing to concatenate");
  if (c.version >= 4 && !c.find("axis")) c.malformed("attribute 'axis' is missing");
  return {concatenated(c, c.integer("axis", 1), std::move(parts))};
}

// An image without a border (left, top, right, bottom), or `scale` (height, width) of it from the first corner.
variables import_crop(node_context& c) {
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
    c.malformed("the crop is within " + kiln::to_string(c.in(0).get_shape()));
  return {c.in(0).slice({{2, 3}, {top, left}, {bottom, right}, {}})};
}

}  // namespace

std::span<const op_importer> slice_importers() {
  static constexpr op_importer table[] = {
      {"", "Crop", 1, import_crop, experimental},
      {"", "DynamicSlice", 1, import_slice, experimental},
      {"", "Concat", 1, import_concat},
      {"", "Pad", 1, import_pad_2},
      {"", "Pad", 11, import_pad},
      {"", "Slice", 1, import_slice_1},
      {"", "Slice", 10, import_slice},
      {"", "Split", 1, import_split_1},
      {"", "Split", 13, import_split},
  };
  return table;
}

}  // namespace kiln::onnx

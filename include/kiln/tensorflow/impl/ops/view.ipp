#include "kiln/onnx/impl/ops/dynamic_axes.hpp"
#include "kiln/tensorflow/impl/ops/common.hpp"

// Shapes, and tensors under other extents.
namespace kiln::tensorflow {

namespace {

variables import_reshape(node_context& c) {
  return as_onnx(c, "Reshape", {c.in(0), c.in(1)}, {number_attribute("allowzero", 1)});
}
variables import_squeeze(node_context& c) {
  const auto axes = c.integers("squeeze_dims");
  if (axes.empty()) return as_onnx(c, "Squeeze", {c.in(0)});
  return as_onnx(c, "Squeeze", {c.in(0), list_of(c, axes)});
}
variables import_expand_dims(node_context& c) { return {c.in(0).unsqueeze({c.number(1, "the axis")})}; }
variables import_transpose(node_context& c) { return {c.in(0).transpose(integers_of(c, 1, "the permutation"))}; }

small_vector<value> inputs_of(const node_context& c, std::size_t from, std::size_t to) {
  small_vector<value> out;
  for (std::size_t i = from; i < to; ++i) out.push_back(c.in(i));
  if (out.empty()) c.malformed("there is nothing to concatenate");
  return out;
}
variables import_concat(node_context& c) {  // the axis first
  return {onnx::concatenated(c, c.number(0, "the axis"), inputs_of(c, 1, c.size()))};
}
variables import_concat_2(node_context& c) {  // the axis last
  if (c.size() < 2) c.malformed("there is nothing to concatenate");
  return {onnx::concatenated(c, c.number(c.size() - 1, "the axis"), inputs_of(c, 0, c.size() - 1))};
}

variables import_pack(node_context& c) {
  small_vector<value> parts = inputs_of(c, 0, c.size());
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), parts[0].rank() + 1);
  for (value& v : parts) v = v.unsqueeze({axis});
  return {onnx::concatenated(c, axis, std::move(parts))};
}
variables import_unpack(node_context& c) {
  const value x = c.in(0);
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), x.rank()), count = c.integer("num", 0);
  if (count < 0 || count > 4096) c.malformed("num is " + std::to_string(count));
  const auto agrees = same(x.dim(axis), dimension(count));
  if (agrees && !*agrees)
    c.malformed("there are " + std::to_string(count) + " parts of extent " + kiln::to_string(x.dim(axis)));
  dims lens = x.get_shape().lens;
  lens[static_cast<std::size_t>(axis)] = count;
  const value whole = agrees ? x : x.expect_dims(lens);
  variables out;
  for (std::int64_t k = 0; k < count; ++k) out.push_back(onnx::element_at(whole, axis, k));
  return out;
}

dtype shape_type(const node_context& c) { return c.type_attribute("out_type", dtype::i32); }
value shape_of(node_context& c, value x) {
  const dims& lens = x.get_shape().lens;
  small_vector<dimension> extents;
  for (const dimension d : lens) extents.push_back(d);
  return c.build.constant(
      literal::of_dimensions({static_cast<std::int64_t>(lens.size())}, std::move(extents), shape_type(c)));
}
variables import_shape(node_context& c) { return {shape_of(c, c.in(0))}; }
variables import_shapes(node_context& c) {
  variables out;
  for (std::size_t i = 0; i < c.size(); ++i) out.push_back(shape_of(c, c.in(i)));
  return out;
}
variables import_size(node_context& c) {
  return {c.build.constant(literal::of_dimensions({}, {kiln::product(c.in(0).get_shape().lens)}, shape_type(c)))};
}
variables import_rank(node_context& c) {
  return {c.build.scalar(dtype::i32, static_cast<std::int64_t>(c.in(0).rank()))};
}

variables import_tile(node_context& c) {
  if (c.constant(1))
    for (const dimension n : c.dimensions(1, "the multiples"))
      if (n.max() < 0) c.malformed("a multiple is not negative, found " + kiln::to_string(n));
  return as_onnx(c, "Tile", {c.in(0), c.in(1).convert(dtype::i64)});
}
variables import_broadcast_to(node_context& c) { return as_onnx(c, "Expand", {c.in(0), c.in(1).convert(dtype::i64)}); }
variables import_reverse(node_context& c) {
  const ints axes = integers_of(c, 1, "the axes");
  return {axes.empty() ? c.in(0) : c.in(0) | op::reverse{axes_within(c, {axes.data(), axes.size()}, c.in(0).rank())}};
}

}  // namespace

op_importer_table view_importers() {
  static constexpr op_importer table[] = {
      {domain, "BroadcastTo", 1, import_broadcast_to},
      {domain, "Concat", 1, import_concat},
      {domain, "ConcatV2", 1, import_concat_2},
      {domain, "ExpandDims", 1, import_expand_dims},
      {domain, "Pack", 1, import_pack},
      {domain, "Rank", 1, import_rank},
      {domain, "Reshape", 1, import_reshape},
      {domain, "ReverseV2", 1, import_reverse},
      {domain, "Shape", 1, import_shape},
      {domain, "ShapeN", 1, import_shapes},
      {domain, "Size", 1, import_size},
      {domain, "Squeeze", 1, import_squeeze},
      {domain, "Tile", 1, import_tile},
      {domain, "Transpose", 1, import_transpose},
      {domain, "Unpack", 1, import_unpack},
  };
  return table;
}

}  // namespace kiln::tensorflow

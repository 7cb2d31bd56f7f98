#include "kiln/tensorflow/impl/tflite/ops/common.hpp"

// Tensors under other extents, parts of them, and padding.
namespace kiln::tensorflow {

namespace {

// The extents as input 1, or as the option of older files.
variables import_reshape(node_context& c) {
  if (c.has(1)) return as_tensorflow(c, "Reshape", {c.in(0), c.in(1)});
  return as_tensorflow(c, "Reshape", {c.in(0), list_of(c, c.integers("new_shape"))});
}
variables import_concatenation(node_context& c) {
  variables in = c.inputs;
  in.push_back(variable(c.build.scalar(dtype::i64, c.integer("axis", 0))));
  return as_tensorflow(c, "ConcatV2", std::move(in));
}
variables import_split(node_context& c) {
  return as_tensorflow(c, "Split", c.inputs, {number_attribute("num_split", c.integer("num_splits", 0))});
}
variables import_mirror_pad(node_context& c) {
  return as_tensorflow(c, "MirrorPad", c.inputs,
                       {text_attribute("mode", c.integer("mode", 0) == 0 ? "REFLECT" : "SYMMETRIC")});
}
// Ends may be counted from the begins.
variables import_strided_slice(node_context& c) {
  variables in = c.inputs;
  if (c.flag("offset")) in[2] = variable(c.in(1) + c.in(2));
  return as_tensorflow(c, "StridedSlice", std::move(in), c.source.attributes);
}
variables import_shape(node_context& c) { return as_tensorflow(c, "Shape", c.inputs); }

// The shape to which two shapes broadcast, the shorter one led by ones.
variables import_broadcast_args(node_context& c) {
  value a = c.in(0), b = c.in(1);
  if (a.rank() != 1 || b.rank() != 1 || !a.dim(0).is_constant() || !b.dim(0).is_constant())
    c.malformed("its inputs are lists of extents");
  const std::int64_t rank = std::max(a.dim(0).value(), b.dim(0).value());
  const auto led = [&](value v) {
    const std::int64_t missing = rank - v.dim(0).value();
    return missing ? c.build.scalar(v.type(), 1).broadcast_to({missing}).concat(v, 0) : v;
  };
  a = led(a);
  b = led(b);
  return {a.equal(c.build.scalar(a.type(), 1)).where(b, a)};
}

// i == j for the last two dims, which are of m and n.
value on_diagonal(node_context& c, dimension m, dimension n) {
  return onnx::indices_along(c, 2, 0, m).equal(onnx::indices_along(c, 2, 1, n));
}
variables import_matrix_diag(node_context& c) {
  const value x = c.in(0);
  if (x.rank() == 0) c.malformed("a diagonal is a vector");
  const auto last = static_cast<std::int64_t>(x.rank()) - 1;
  return {on_diagonal(c, x.dim(last), x.dim(last)).where(x.unsqueeze({last}), scalar_like(c, x, 0))};
}
variables import_matrix_set_diag(node_context& c) {
  const value x = c.in(0), diagonal = c.in(1);
  if (x.rank() < 2 || diagonal.rank() + 1 != x.rank()) c.malformed("a matrix is given its diagonal");
  const auto last = static_cast<std::int64_t>(x.rank()) - 1;
  const dimension rows = x.dim(last - 1), columns = x.dim(last);
  if (!(rows == columns) && !(rows.is_constant() && columns.is_constant()))
    c.unsupported("a matrix of symbolic extents");
  const bool is_wide = rows.is_constant() && columns.is_constant() && rows.value() < columns.value();
  // along rows where these are fewer, else along columns
  const value spread = diagonal.unsqueeze({is_wide ? last : last - 1});
  return {on_diagonal(c, x.dim(last - 1), x.dim(last)).where(spread, x)};
}

// The operand with the update from the start on, which is moved so that it fits.
variables import_dynamic_update_slice(node_context& c) {
  const value x = c.in(0), update = c.in(1), start = c.in(2).convert(dtype::i64);
  const std::size_t rank = x.rank();
  if (update.rank() != rank || !(start.get_shape().elements() == dimension(rank)))
    c.malformed("operand, update and start are of one rank");
  value taken = update, inside;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto axis = static_cast<std::int64_t>(d);
    const dimension n = x.dim(axis), own = update.dim(axis);
    if (n == own) continue;
    const value room = dimensions_value(c.build, {}, {n - own});
    const value first = onnx::element_at(start, 0, axis).min(room).max(c.build.scalar(dtype::i64, 0));
    const value at = onnx::indices_along(c, 1, 0, n) - first;
    const value end = dimensions_value(c.build, {}, {own}), zero = c.build.scalar(dtype::i64, 0);
    value within = onnx::both(onnx::not_less(at, zero), at < end);
    taken = taken.gather(at.max(zero).min(end - c.build.scalar(dtype::i64, 1)), axis);
    within = within.unsqueeze(axes_from(1, rank - d));
    inside = onnx::both(inside, within);
  }
  return {inside ? inside.where(taken, x) : update};
}

}  // namespace

tflite_table tflite_view_operators() {
  static constexpr tflite_operator table[] = {
      {"BROADCAST_ARGS", import_broadcast_args},
      {"BROADCAST_TO", nullptr, "BroadcastTo"},
      {"CONCATENATION", import_concatenation},
      {"DYNAMIC_UPDATE_SLICE", import_dynamic_update_slice},
      {"EXPAND_DIMS", nullptr, "ExpandDims"},
      {"FILL", nullptr, "Fill"},
      {"MATRIX_DIAG", import_matrix_diag},
      {"MATRIX_SET_DIAG", import_matrix_set_diag},
      {"MIRROR_PAD", import_mirror_pad},
      {"PACK", nullptr, "Pack"},
      {"PAD", nullptr, "Pad"},
      {"PADV2", nullptr, "PadV2"},
      {"RANGE", nullptr, "Range"},
      {"RANK", nullptr, "Rank"},
      {"RESHAPE", import_reshape},
      {"REVERSE_V2", nullptr, "ReverseV2"},
      {"SHAPE", import_shape},
      {"SLICE", nullptr, "Slice"},
      {"SPLIT", import_split},
      {"SPLIT_V", nullptr, "SplitV"},
      {"SQUEEZE", nullptr, "Squeeze"},
      {"STRIDED_SLICE", import_strided_slice},
      {"TILE", nullptr, "Tile"},
      {"TRANSPOSE", nullptr, "Transpose"},
      {"UNPACK", nullptr, "Unpack"},
  };
  return table;
}

}  // namespace kiln::tensorflow

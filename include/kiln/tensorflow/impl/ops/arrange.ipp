#include "kiln/onnx/impl/ops/dynamic_axes.hpp"
#include "kiln/tensorflow/impl/ops/common.hpp"

// Elements in other places, and tensors from positions.
namespace kiln::tensorflow {

namespace {

variables import_ensure_shape(node_context& c) {
  const value x = c.in(0);
  const onnx::attribute* const shape = c.find("shape");
  if (!shape || shape->kind != onnx::attribute_kind::integers) return {x};  // of any rank
  if (shape->integers.size() != x.rank())
    c.malformed("the shape has " + std::to_string(shape->integers.size()) + " dims, the input " +
                std::to_string(x.rank()));
  dims lens = x.get_shape().lens;
  bool is_open = false;
  for (std::size_t d = 0; d < lens.size(); ++d) {
    if (shape->integers[d] < 0 || lens[d] == dimension(shape->integers[d])) continue;
    if (lens[d].is_constant())
      c.malformed("dim " + std::to_string(d) + " is " + kiln::to_string(lens[d]) + ", not " +
                  std::to_string(shape->integers[d]));
    lens[d] = shape->integers[d];
    is_open = true;
  }
  return {is_open ? x.expect_dims(lens) : x};
}

// start, stop, how many
variables import_lin_space(node_context& c) {
  const value start = c.in(0), stop = c.in(1);
  const dimension n = c.extent(2, "the number of values");
  const value i = c.build.add(op::iota{{n}, 0, start.type()});
  const value steps = onnx::dimensions_value(c.build, {}, {larger(n - 1, 1)}).convert(start.type());
  return {start + (stop - start) / steps * i};
}

// Matrices without what is farther than so many below and above the diagonal; below 0 is all of it.
variables import_band_part(node_context& c) {
  const value x = c.in(0);
  if (x.rank() < 2) c.malformed("the input has " + std::to_string(x.rank()) + " dims, and a matrix two");
  const auto rank = static_cast<std::int64_t>(x.rank());
  const value rows = onnx::indices_along(c, x.rank(), rank - 2, x.dim(rank - 2)),
              columns = onnx::indices_along(c, x.rank(), rank - 1, x.dim(rank - 1)), below = rows - columns;
  value kept;
  const auto keep = [&](std::int64_t most, value distance) {
    if (most < 0) return;
    const value near = c.build.add(op::less_or_equal{}, distance, c.build.scalar(dtype::i64, most));
    kept = onnx::both(kept, near);
  };
  keep(c.number(1, "the number of diagonals below"), below);
  keep(c.number(2, "the number of diagonals above"), columns - rows);
  return {kept ? kept.where(x, c.build.scalar(x.type(), 0)) : x};
}

variables import_reverse_sequence(node_context& c) {
  require(c, "seq_dim");
  return as_onnx(c, "ReverseSequence", {c.in(0), c.in(1).convert(dtype::i64)},
                 {number_attribute("time_axis", c.integer("seq_dim", 0)),
                  number_attribute("batch_axis", c.integer("batch_dim", 0))});
}

variables import_roll(node_context& c) {
  value x = c.in(0);
  const ints shifts = integers_of(c, 1, "the shift"), axes = integers_of(c, 2, "the axis");
  if (shifts.size() != axes.size()) c.malformed("as many shifts as axes");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axis_within(c, axes[i], x.rank());
    const dimension extent = x.dim(axis);
    if (!extent.is_constant()) c.unsupported("rolls an axis of " + kiln::to_string(extent));
    const std::int64_t n = extent.value(), by = n ? (shifts[i] % n + n) % n : 0;
    if (by == 0) continue;
    x = x.slice({{axis}, {n - by}, {n}, {}}).concat(x.slice({{axis}, {0}, {n - by}, {}}), axis);
  }
  return {x};
}

variables import_invert_permutation(node_context& c) {
  const value p = c.in(0);
  if (p.rank() != 1) c.malformed("a permutation is a list");
  const value own = c.build.add(op::iota{p.get_shape().lens, 0, p.type()});
  return {c.build.add(op::scatter_nd{}, own, p.convert(dtype::i64).unsqueeze({1}), own)};
}

// indices, shape, values, the value elsewhere
variables import_sparse_to_dense(node_context& c) {
  value indices = c.in(0).convert(dtype::i64), values = c.in(2);
  if (indices.rank() > 2) c.malformed("the indices are a matrix");
  if (indices.rank() == 0) indices = indices.unsqueeze({0});
  if (indices.rank() == 1) indices = indices.unsqueeze({1});
  if (values.rank() == 0) values = values.broadcast_to({indices.dim(0)});
  const value whole = as_onnx(c, "Expand", {c.in(3), c.in(1).convert(dtype::i64)})[0].tensor;
  return {c.build.add(op::scatter_nd{}, whole, indices, values)};
}

}  // namespace

op_importer_table arrange_importers() {
  static constexpr op_importer table[] = {
      {domain, "EnsureShape", 1, import_ensure_shape},
      {domain, "InvertPermutation", 1, import_invert_permutation},
      {domain, "LinSpace", 1, import_lin_space},
      {domain, "MatrixBandPart", 1, import_band_part},
      {domain, "ReverseSequence", 1, import_reverse_sequence},
      {domain, "Roll", 1, import_roll},
      {domain, "SparseToDense", 1, import_sparse_to_dense},
  };
  return table;
}

}  // namespace kiln::tensorflow

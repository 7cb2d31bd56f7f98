#include "kiln/onnx/impl/ops/dynamic_axes.hpp"
#include "kiln/op/index/cumprod.hpp"

// Gather, scatter, TopK, cumulative operators, and others that address elements by index.
namespace kiln::onnx {

namespace {

variables import_gather(node_context& c) { return {c.in(0).gather(c.in(1), c.integer("axis", 0))}; }
variables import_gather_elements(node_context& c) {
  return {c.build.add(op::gather_elements{c.integer("axis", 0)}, c.in(0), c.in(1))};
}
variables import_gather_nd(node_context& c) {
  return {c.build.add(op::gather_nd{c.integer("batch_dims", 0)}, c.in(0), c.in(1))};
}

op::scatter_mode scatter_mode_of(const node_context& c) {
  using enum op::scatter_mode;
  return enum_attribute(c, "reduction", {none, add, mul, min, max});
}
variables import_scatter_elements(node_context& c) {
  return {c.build.add(op::scatter_elements{c.integer("axis", 0), scatter_mode_of(c)}, c.in(0), c.in(1), c.in(2))};
}
variables import_scatter_nd(node_context& c) {
  return {c.build.add(op::scatter_nd{scatter_mode_of(c)}, c.in(0), c.in(1), c.in(2))};
}

variables import_one_hot(node_context& c) {
  value depth = c.in(1);
  if (!is_integer(depth.type())) depth = depth.reshape({}).convert(dtype::i64);
  const dimension n = c.with_inputs({variable(depth)}).extent(0, "the depth");
  return {c.build.add(op::one_hot{n, c.integer("axis", -1)}, c.in(0).convert(dtype::i64), c.in(2))};
}

variables top_k(node_context& c, dimension k) {
  const value best =
      c.build.add(op::topk{k, c.integer("axis", -1), c.flag("largest", true), c.flag("sorted", true)}, c.in(0));
  return {best, best.result(1)};
}
variables import_top_k_1(node_context& c) { return top_k(c, c.integer("k", 0)); }
variables import_top_k(node_context& c) {
  const auto k = c.dimensions_of(listed(c.in(1), 1), "the number of elements kept", 0);
  if (k.size() != 1) c.malformed("k is one number");
  return top_k(c, k[0]);
}

template <class Op> variables import_cumulative(node_context& c) {
  const value x = c.in(0);
  const auto along = [&](value v, std::int64_t axis) { return v | Op{axis, c.flag("exclusive"), c.flag("reverse")}; };
  if (!c.is_dynamic(1)) return {along(x, axis_within(c, c.number(1, "the axis"), x.rank()))};
  const value flags = axis_flags(c, normalized_axes(c, 1, x.rank()), x.rank());
  return {along_flagged(c, x, flags, [&](value v, const ints& axis) { return along(v, axis[0]); })};
}

variables import_trilu(node_context& c) {
  if (c.has(1) && !c.constant(1)) {  // a mask, since a run computes the diagonal
    const value x = c.in(0);
    if (x.rank() < 2) c.malformed("the input has rows and columns");
    const dims lens{x.dim(-2), x.dim(-1)};
    const value from_diagonal = c.build.add(op::iota{lens, 1, dtype::i64}) - c.build.add(op::iota{lens, 0, dtype::i64});
    const value k = c.in(1).convert(dtype::i64).reshape({});
    const value dropped = c.flag("upper", true) ? from_diagonal < k : from_diagonal > k;
    return {dropped.where(c.build.scalar(x.type(), 0), x)};
  }
  return {c.in(0) | op::tri{c.flag("upper", true), c.has(1) ? c.number(1, "the diagonal") : 0}};
}

// A gather along the time axis, backwards within the length of each sequence.
variables import_reverse_sequence(node_context& c) {
  const value x = c.in(0);
  const std::int64_t batch = axis_within(c, c.integer("batch_axis", 1), x.rank()),
                     time = axis_within(c, c.integer("time_axis", 0), x.rank());
  if (batch == time) c.malformed("batch_axis and time_axis differ");
  dims lengths(x.rank(), dimension(1));
  lengths[static_cast<std::size_t>(batch)] = x.dim(batch);
  const value position = indices_along(c, x.rank(), time, x.dim(time)),
              length = c.in(1).convert(dtype::i64).reshape(lengths);
  const value at = (position < length).where(length - 1 - position, position);
  if (batch < 2 && time < 2) {  // whole slices, which both axes name as one
    dims rows{x.dim(0) * x.dim(1)}, both{x.dim(0), x.dim(1)};
    for (std::size_t d = 2; d < x.rank(); ++d) rows.push_back(x.get_shape().lens[d]);
    const value other = indices_along(c, 2, batch, x.dim(batch)), place = at.reshape(both);
    const value step = dimensions_value(c.build, {}, {x.dim(1)});
    const value row = time == 0 ? place * step + other : other * step + place;
    return {x.reshape(rows).gather(row, 0)};
  }
  return {c.build.add(op::gather_elements{time}, x, at.broadcast_to(x.get_shape().lens))};
}

}  // namespace

std::span<const op_importer> index_importers() {
  static constexpr op_importer table[] = {
      {"", "CumProd", 26, import_cumulative<op::cumprod>},
      {"", "CumSum", 11, import_cumulative<op::cumsum>},
      {"", "Gather", 1, import_gather},
      {"", "GatherElements", 11, import_gather_elements},
      {"", "GatherND", 11, import_gather_nd},
      {"", "OneHot", 9, import_one_hot},
      {"", "ReverseSequence", 10, import_reverse_sequence},
      {"", "Scatter", 9, import_scatter_elements},
      {"", "ScatterElements", 11, import_scatter_elements},
      {"", "ScatterND", 11, import_scatter_nd},
      {"", "TopK", 1, import_top_k_1},
      {"", "TopK", 10, import_top_k},
      {"", "Trilu", 14, import_trilu},
      {microsoft, "Trilu", 1, import_trilu},
  };
  return table;
}

}  // namespace kiln::onnx

#include "kiln/interface/migraphx/impl/operators/lowering.hpp"
#include "kiln/op/index/bit_cast.hpp"

// Operators that choose elements by position.
namespace kiln::migraphx {

namespace {

// Whether an operand is what MIGraphX calls a scalar: one element that has no axis.
bool is_scalar(const shape& s) { return !s.dynamic() && s.ndim() == 1 && s.scalar(); }

value_list add_gather(lowering& c) {
  c.expect(2);
  const value indices = is_scalar(c.types[1]) ? c.in(1).reshape({}) : c.in(1);
  return {c.in(0).gather(indices, c.axis("axis"))};
}
value_list add_gather_nd(lowering& c) {
  c.expect(2);
  return {c.build.add(op::gather_nd{c.integer("batch_dims")}, c.in(0), c.in(1).convert(dtype::i64))};
}
template <class Op> value_list add_arg(lowering& c) {
  c.expect(1);
  return {c.build.add(Op{c.axis("axis"), c.flag("select_last_index")}, c.in(0))};
}
// The values, then their indices.
value_list add_topk(lowering& c) {
  c.expect(1, 2);
  const value made = c.build.add(op::topk{c.integer("k"), c.axis("axis"), c.flag("largest"), true}, c.in(0));
  const value indices = made.result(1);
  if (c.size() == 1) return {made, indices};
  // names of the elements, which may be others than their positions
  return {made,
          c.build.add(op::gather_elements{c.axis("axis")}, c.in(1).broadcast_to(c.in(0).get_shape().lens), indices)};
}
value_list add_onehot(lowering& c) {
  c.expect(2, 3);
  const value indices = c.in(0), values = c.in(c.size() - 1);
  const dimension depth = c.size() == 3 ? dimension(c.numbers(1)[0]) : dimension(c.integer("depth"));
  return {c.build.add(op::one_hot{depth, c.integer("axis")}, indices, values)};
}
value_list add_bit_cast(lowering& c) {
  c.expect(1);
  return {c.build.add(op::bit_cast{c.type("target_type")}, c.in(0))};
}
// What iteration i of a scan reads: the slice at i, or at i from the end.
value_list add_scan_slice(lowering& c) {
  c.expect(2);
  const std::int64_t axis = c.axis("axis");
  value at = c.in(1).convert(dtype::i64).reshape({1});
  if (c.integer("direction") == 1) {
    const dimension last = c.in(0).dim(axis) - 1;
    at = c.build.constant(literal::of_dimensions({1}, {last})) - at;
  }
  return {c.in(0).gather(at, axis)};
}
// The extents of the operand from start to end.
value_list add_dimensions_of(lowering& c) {
  c.expect(1);
  const auto rank = static_cast<std::int64_t>(c.in(0).rank());
  const std::int64_t start = c.integer("start"), end = c.integer("end") == 0 ? rank : c.integer("end");
  if (start < 0 || end > rank || start >= end)
    raise(fault::of(errc::invalid_argument, "axes from start to end lie within the rank", rank, end));
  small_vector<dimension> lens;
  for (std::int64_t d = start; d < end; ++d) lens.push_back(c.in(0).dim(d));
  return {c.build.constant(literal::of_dimensions({end - start}, std::move(lens)))};
}

}  // namespace

operator_table index_operators() {
  static constexpr operator_row table[] = {
      {"argmax", "axis: 0, select_last_index: false", add_arg<op::arg_max>},
      {"argmin", "axis: 0, select_last_index: false", add_arg<op::arg_min>},
      {"bit_cast", "target_type: half_type", add_bit_cast},
      {"dimensions_of", "start: 0, end: 0", add_dimensions_of},
      {"gather", "axis: 0", add_gather},
      {"gathernd", "batch_dims: 0", add_gather_nd},
      {"onehot", "axis: -1, depth: 0", add_onehot},
      {"scan_slice", "axis: 0, direction: 0", add_scan_slice},
      {"topk", "k: 1, axis: 0, largest: true", add_topk, true},
  };
  return table;
}

}  // namespace kiln::migraphx

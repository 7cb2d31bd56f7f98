#include "kiln/interface/migraphx/impl/operators/lowering.hpp"
#include "kiln/op/dynamic/selection.hpp"

// Operators whose count of results only a run knows. MIGraphX gives as many as there may be, the last of them zeros.
namespace kiln::migraphx {

namespace {

value padded_to(lowering& c, value x, std::size_t axis, dimension extent) {
  op::pad op;
  for (std::size_t d = 0; d < 2 * x.rank(); ++d) op.pads.push_back(0);
  op.pads[x.rank() + axis] = extent - x.dim(static_cast<std::int64_t>(axis));
  return c.build.add(op, x);
}

value_list add_nonzero(lowering& c) {
  c.expect(1);
  const dimension all = c.in(0).get_shape().elements();
  const value found = c.build.add(op::nonzero{c.symbol("count", 0, all.max())}, c.in(0));
  return {padded_to(c, found, 1, all)};
}

value one_number(lowering& c, std::size_t i, dtype t) {
  return c.has(i) ? c.in(i).convert(t).reshape({}) : c.build.scalar(t, 0);
}
value_list add_nonmaxsuppression(lowering& c) {
  c.expect(2, 5);
  const value boxes = c.in(0), scores = c.in(1);
  op::non_max_suppression op;
  op.centered = c.flag("center_point_box");
  op.has_least_score = c.has(4);
  const dimension all = scores.get_shape().elements();
  op.count = c.symbol("count", 0, all.max());
  const value made = c.build.add(
      op, small_vector<value>{boxes.convert(dtype::f32), scores.convert(dtype::f32), one_number(c, 2, dtype::i64),
                              one_number(c, 3, dtype::f32), one_number(c, 4, dtype::f32)});
  return {c.flag("use_dyn_output") ? made : padded_to(c, made, 0, all)};
}

value_list add_unique(lowering& c) {
  c.expect(1);
  op::unique op;
  op.flat = c.op.values().at("axis").is_null();
  if (!op.flat) op.along = c.axis("axis");
  op.ascending = c.flag("sorted");
  const dimension most = op.flat ? c.in(0).get_shape().elements() : c.in(0).dim(op.along);
  op.count = c.symbol("count", 0, most.max());
  const value made = c.build.add(op, c.in(0));
  return {made, made.result(1), made.result(2), made.result(3)};
}

}  // namespace

operator_table selection_operators() {
  static constexpr operator_row table[] = {
      {"nonmaxsuppression", "center_point_box: false, use_dyn_output: false", add_nonmaxsuppression},
      {"nonzero", "", add_nonzero},
      {"unique", "axis: null, sorted: true", add_unique, true},
  };
  return table;
}

}  // namespace kiln::migraphx

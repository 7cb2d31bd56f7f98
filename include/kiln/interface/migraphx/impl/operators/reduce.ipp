#include "kiln/interface/migraphx/impl/operators/lowering.hpp"

namespace kiln::migraphx {

namespace {

// Axes are an attribute, or a constant second operand.
ints reduced_axes(lowering& c) {
  c.expect(1, 2);
  if (!c.has(1)) return axes_of(c, "axes");
  ints out;
  for (const std::int64_t a : c.numbers(1)) out.push_back(normal_axis(a, c.in(0).rank()));
  return out;
}

template <class Op> value_list add_reduction(lowering& c) {
  Op op;
  op.axes = reduced_axes(c);
  return {c.build.add(op, c.in(0))};
}
template <class Op> value_list add_condition(lowering& c) {
  Op op;
  op.axes = reduced_axes(c);
  return {c.build.add(op, c.in(0).convert(dtype::boolean)).convert(c.in(0).type())};
}
value_list add_prefix_sum(lowering& c) {
  c.expect(1);
  return {c.build.add(op::cumsum{c.axis("axis"), c.flag("exclusive"), c.flag("reverse")}, c.in(0))};
}

}  // namespace

operator_table reduce_operators() {
  static constexpr operator_row table[] = {
      {"prefix_scan_sum", "axis: 0, exclusive: false, reverse: false", add_prefix_sum},
      {"reduce_all", "axes: []", add_condition<op::reduce_all>},
      {"reduce_any", "axes: []", add_condition<op::reduce_any>},
      {"reduce_max", "axes: []", add_reduction<op::reduce_max>},
      {"reduce_mean", "axes: []", add_reduction<op::reduce_mean>},
      {"reduce_min", "axes: []", add_reduction<op::reduce_min>},
      {"reduce_prod", "axes: []", add_reduction<op::reduce_prod>},
      {"reduce_sum", "axes: []", add_reduction<op::reduce_sum>},
  };
  return table;
}

}  // namespace kiln::migraphx

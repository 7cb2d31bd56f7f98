#include "kiln/onnx/impl/ops/common.hpp"
#include "kiln/onnx/impl/ops/dynamic_axes.hpp"

namespace kiln::onnx {

namespace {

// Reduces over the named axes, by default over all; noop_with_empty_axes makes that none. `apply(x, axes)` keeps
// reduced extents as 1.
template <class Apply> variables reduce(node_context& c, const ints& named, Apply&& apply) {
  const value x = c.in(0);
  const bool none = named.empty() && c.flag("noop_with_empty_axes");
  const ints axes = none || !named.empty() ? named : axes_from(0, x.rank());
  const value kept = axes.empty() ? x.unsqueeze({0}) : x;
  value out = apply(kept, axes.empty() ? ints{0} : axes);
  if (axes.empty()) return {out.squeeze({0})};
  if (!c.flag("keepdims", true)) out = out.squeeze(axes);
  return {out};
}
template <class Apply> variables reduce_by_attribute(node_context& c, Apply&& apply) {
  const ints axes = axes_within(c, c.integers("axes"), c.in(0).rank());
  return reduce(c, axes, apply);
}
using reducer = value (*)(value, const ints&);
using change = value (*)(value);
value unchanged(value x) { return x; }

// One axis after the other, by flags that a run computes.
variables dynamic_reduce(node_context& c, change begin, reducer each, change end) {
  const value x = c.in(0);
  if (x.rank() == 0) c.unsupported("reduces a scalar over axes that a run computes");
  value flags = axis_flags(c, normalized_axes(c, 1, x.rank()), x.rank());
  const dimension count = c.in(1).get_shape().elements();
  if (!count.is_constant() && !c.flag("noop_with_empty_axes")) {
    const value none = dimensions_value(c.build, {}, {count}).equal(c.build.scalar(dtype::i64, 0));
    flags = either(flags, none);
  }
  const value y = end(along_flagged(c, begin(x), flags, each));
  if (c.flag("keepdims", true)) return {y};
  const std::size_t dropped = axis_count(c, c.in(1));
  if (dropped > x.rank()) c.malformed("there are more axes than dims");
  return {y.reshape(remaining_extents(c, x.get_shape().lens, flags, x.rank() - dropped))};
}
template <class Apply> variables reduce_by_input(node_context& c, Apply&& apply) {
  ints axes;
  const bool none = c.has(1) && c.in(1).get_shape().elements() == dimension(0);
  if (c.has(1) && !none) axes = axes_within(c, as_span(c.numbers(1, "the list of axes")), c.in(0).rank());
  return reduce(c, axes, apply);
}

template <class Op> value apply_op(value x, const ints& axes) { return x | Op{axes}; }
// The logarithm of integers is computed in f64.
value apply_log_sum(value given, const ints& axes) {
  const value sum = given.reduce_sum(axes);
  return as_real(sum).log().convert(given.type());
}
value apply_log_sum_exp(value given, const ints& axes) {
  const value x = as_real(given);
  const value greatest = x.reduce_max(axes);
  // subtracting an infinite maximum would give NaN
  const value shift = (greatest | op::is_inf{}).where(x.owner().scalar(x.type(), 0.0f), greatest);
  return ((x - shift).exp().reduce_sum(axes).log() + shift).convert(given.type());
}
template <class Number, class Bool> value apply_extreme(value x, const ints& axes) {
  return x.type() == dtype::boolean ? x | Bool{axes} : x | Number{axes};
}

value apply_square(value x) { return x * x; }
value apply_log(value x) { return as_real(x).log().convert(x.type()); }

template <reducer Apply> variables import_reduce_1(node_context& c) { return reduce_by_attribute(c, Apply); }
// Several axes in a run: `Begin` once, `Each` for every axis, `End` once.
template <reducer Apply, reducer Each = Apply, change Begin = unchanged, change End = unchanged>
variables import_reduce_18(node_context& c) {
  if (c.is_dynamic(1) && !(c.in(1).get_shape().elements() == dimension(0))) return dynamic_reduce(c, Begin, Each, End);
  return reduce_by_input(c, Apply);
}

template <class Op> variables import_arg(node_context& c) {
  const value x = c.in(0);
  const std::int64_t axis = axis_within(c, c.integer("axis", 0), x.rank());
  const value kept = x | Op{axis, c.flag("select_last_index")};
  return {c.flag("keepdims", true) ? kept : kept.squeeze({axis})};
}

}  // namespace

std::span<const op_importer> reduce_importers() {
  constexpr auto sum = apply_op<op::reduce_sum>, mean = apply_op<op::reduce_mean>, prod = apply_op<op::reduce_prod>,
                 l1 = apply_op<op::reduce_l1>, l2 = apply_op<op::reduce_l2>,
                 sum_square = apply_op<op::reduce_sum_square>, greatest = apply_extreme<op::reduce_max, op::reduce_any>,
                 least = apply_extreme<op::reduce_min, op::reduce_all>;
  static constexpr op_importer table[] = {
      {"", "ArgMax", 1, import_arg<op::arg_max>},
      {"", "ArgMin", 1, import_arg<op::arg_min>},
      {"", "ReduceL1", 1, import_reduce_1<l1>},
      {"", "ReduceL1", 18, import_reduce_18<l1>},
      {"", "ReduceL2", 1, import_reduce_1<l2>},
      {"", "ReduceL2", 18, import_reduce_18<l2>},
      {"", "ReduceLogSum", 1, import_reduce_1<apply_log_sum>},
      {"", "ReduceLogSum", 18, import_reduce_18<apply_log_sum, sum, unchanged, apply_log>},
      {"", "ReduceLogSumExp", 1, import_reduce_1<apply_log_sum_exp>},
      {"", "ReduceLogSumExp", 18, import_reduce_18<apply_log_sum_exp>},
      {"", "ReduceMax", 1, import_reduce_1<greatest>},
      {"", "ReduceMax", 18, import_reduce_18<greatest>},
      {"", "ReduceMean", 1, import_reduce_1<mean>},
      {"", "ReduceMean", 18, import_reduce_18<mean>},
      {"", "ReduceMin", 1, import_reduce_1<least>},
      {"", "ReduceMin", 18, import_reduce_18<least>},
      {"", "ReduceProd", 1, import_reduce_1<prod>},
      {"", "ReduceProd", 18, import_reduce_18<prod>},
      {"", "ReduceSum", 1, import_reduce_1<sum>},
      {"", "ReduceSum", 13, import_reduce_18<sum>},
      {"", "ReduceSumSquare", 1, import_reduce_1<sum_square>},
      {"", "ReduceSumSquare", 18, import_reduce_18<sum_square, sum, apply_square>},
  };
  return table;
}

}  // namespace kiln::onnx

#include "kiln/onnx/impl/ops/dynamic_axes.hpp"

#include <algorithm>
#include <set>

#include "kiln/op/dynamic/bind_dims.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/selection.hpp"

namespace kiln::onnx {

namespace {

value numbers_value(builder& b, const dims& extents) {
  small_vector<dimension> values;
  for (const dimension d : extents) values.push_back(d);
  return dimensions_value(b, {static_cast<std::int64_t>(extents.size())}, std::move(values));
}
value all_axes(node_context& c, std::size_t rank) { return indices_along(c, 1, 0, static_cast<std::int64_t>(rank)); }

}  // namespace

std::size_t axis_count(node_context& c, value axes) {
  const dimension n = axes.get_shape().elements();
  if (!n.is_constant() || n.value() > static_cast<std::int64_t>(max_rank))
    c.unsupported("the list of axes has " + kiln::to_string(n) + " elements, and a run computes them");
  return static_cast<std::size_t>(n.value());
}

value normalized_axes(node_context& c, std::size_t input, std::size_t rank) {
  const value axes = c.in(input);
  if (!is_integer(axes.type()))
    c.malformed("the list of axes is an integer tensor, not " + to_string(axes.get_shape()));
  const dimension n = axes.get_shape().elements();
  // gather checks the index, and counts a negative one from the end
  return all_axes(c, rank).gather(axes.convert(dtype::i64).reshape({n}));
}

value axis_flags(node_context& c, value axes, std::size_t rank) {
  const value meets = axes.unsqueeze({1}).equal(all_axes(c, rank));
  return (meets | op::reduce_any{{0}}).reshape({static_cast<std::int64_t>(rank)});
}

dims remaining_extents(node_context& c, const dims& from, value flags, std::size_t count) {
  op::compress keep;
  keep.count = c.bodies->fresh_symbol("count");
  const value left = c.build.add(keep, numbers_value(c.build, from), flags.logical_not());
  return dims(std::span<const dimension>(
      c.dimensions_of(left.reshape({static_cast<std::int64_t>(count)}), "an extent that is left", 0)));
}

value branch_of(node_context& c, value flag, value x, module_graph then_body, module_graph else_body,
                const shape& result) {
  op::branch o;
  o.then_inputs = 1;
  o.then_body = c.bodies->add_module(std::move(then_body));
  o.else_body = c.bodies->add_module(std::move(else_body));
  const value_id made =
      c.build.module().add_with_shapes(o, {flag.id(), x.id(), x.id()}, {result}, c.build.label.view());
  return c.build.wrap(made);
}

value concatenated(node_context& c, std::int64_t axis, small_vector<value> parts) {
  constexpr std::size_t most = 64;
  if (parts.size() == 1) return parts[0];
  const std::int64_t at = normal_axis(axis, parts[0].rank());
  std::set<std::int64_t> lengths;
  for (const value& p : parts)
    if (at >= 0 && at < static_cast<std::int64_t>(p.rank()) && !p.dim(at).is_constant())
      lengths.insert(p.dim(at).raw());
  if (lengths.size() <= most) return c.build.add(op::concat{axis}, parts);
  small_vector<value> joined;
  for (std::size_t k = 0; k < parts.size(); k += most) {
    const std::size_t n = std::min(most, parts.size() - k);
    const value group = concatenated(c, axis, small_vector<value>(std::span<const value>(parts.data() + k, n)));
    dims lens = group.get_shape().lens;
    dimension& length = lens[static_cast<std::size_t>(at)];
    const value sum = dimensions_value(c.build, {1}, {length});
    op::bind_dims o;
    o.names.push_back(length = c.bodies->fresh_symbol("length"));
    c.build.add(o, sum);
    joined.push_back(group.expect_dims(lens));
  }
  return concatenated(c, axis, std::move(joined));
}

// Starts, ends and steps for all axes, where those not named are kept whole; then a gather along each axis.
value dynamic_slice(node_context& c, value x) {
  const std::size_t rank = x.rank();
  const auto one = [&](std::int64_t n) { return c.build.scalar(dtype::i64, n); };
  const value starts = c.in(1).convert(dtype::i64);
  const std::size_t n = axis_count(c, starts);
  const auto list = static_cast<std::int64_t>(n), all = static_cast<std::int64_t>(rank);
  const value axes = c.has(3) ? normalized_axes(c, 3, rank) : all_axes(c, n);
  const auto spread = [&](value given, std::int64_t otherwise) {
    const value base = one(otherwise).broadcast_to({all});
    return c.build.add(op::scatter_elements{0}, base, axes, given.convert(dtype::i64).reshape({list}));
  };
  const value is_named = axis_flags(c, axes, rank), from = spread(starts, 0), to = spread(c.in(2), 0),
              given = c.has(4) ? spread(c.in(4), 1) : one(1).broadcast_to({all});
  const value extents = numbers_value(c.build, x.get_shape().lens), farthest = extents.max(one(1));
  // longer steps than an extent take one element anyway; a step of 0 is an error
  const value near = given.max(-farthest).min(farthest), backwards = near < one(0);
  const value stride = dimensions_value(c.build, {all}, c.dimensions_of(near.max(-near), "the size of a step", 1));
  const value steps = backwards.where(-stride, stride);
  const auto counted = [&](value v) { return (v < one(0)).where(v + extents, v); };
  // backwards, the last index is 0 and the end is before it
  const value last = extents - backwards.where(one(1), one(0));
  const value first = counted(from).max(one(0)).min(last),
              end = counted(to).max(backwards.where(one(-1), one(0))).min(extents);
  const value length = (backwards.where(first - end, end - first).max(one(0)) + stride - 1) / stride;
  const value count = is_named.where(length, extents), begin = is_named.where(first, one(0)),
              step = is_named.where(steps, one(1));
  const auto kept = c.dimensions_of(count, "an extent of a slice", 0);
  for (std::size_t d = 0; d < rank; ++d) {
    const auto a = static_cast<std::int64_t>(d);
    const auto of = [&](value v) { return v.slice({{0}, {a}, {a + 1}, {}}); };
    const value at = indices_along(c, 1, 0, kept[d]) * of(step) + of(begin);
    x = x.gather(at, a);
  }
  return x;
}

}  // namespace kiln::onnx

#include "kiln/onnx/impl/ops/dynamic_axes.hpp"

#include <algorithm>
#include <set>

#include "kiln/op/dynamic/bind_dims.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/op/dynamic/slice_at.hpp"

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

value dynamic_slice(node_context& c, value x) {
  const value starts = c.in(1).convert(dtype::i64);
  const auto n = static_cast<std::int64_t>(axis_count(c, starts));
  const auto list = [&](std::size_t input) { return c.in(input).convert(dtype::i64).reshape({n}); };
  op::slice_at o;
  for (std::size_t d = 0; d < x.rank(); ++d) o.extents.push_back(c.bodies->fresh_symbol("an extent of a slice", 0));
  const value axes = c.has(3) ? list(3) : all_axes(c, static_cast<std::size_t>(n)),
              steps = c.has(4) ? list(4) : c.build.scalar(dtype::i64, 1).broadcast_to({n});
  return c.build.add(o, x, starts.reshape({n}), list(2), axes, steps);
}

}  // namespace kiln::onnx

#include <algorithm>

#include "kiln/interface/migraphx/impl/operators/lowering.hpp"

// Operators that move no element, or only move them.
namespace kiln::migraphx {

namespace {

dims extents_of(const ints& numbers) {
  dims out;
  for (const std::int64_t n : numbers) out.push_back(n);
  return out;
}
// Extents of the operands from `from` on that follow numpy's rule.
dims common_lens(const lowering& c, std::size_t from) {
  dims lens = c.in(from).get_shape().lens;
  for (std::size_t i = from + 1; i < c.size(); ++i) lens = broadcast(lens, c.in(i).get_shape().lens).value();
  return lens;
}

value_list add_multibroadcast(lowering& c) {
  c.expect(1, static_cast<std::size_t>(-1));
  const bool named = !c.op.values().at("out_lens").empty() || !c.op.values().at("out_dyn_dims").empty();
  if (c.size() == 1 && !named) raise(errc::invalid_argument, "extents are named, or there is another operand");
  const dims lens = c.size() > 1 ? common_lens(c, 0) : c.extents("out_lens");
  return {c.in(0).broadcast_to(lens)};
}
value_list add_broadcast(lowering& c) {
  c.expect(1, 2);
  const dims lens = c.size() == 2 ? c.in(1).get_shape().lens : c.extents("out_lens");
  const std::int64_t axis = c.integer("axis");
  const value x = c.in(0);
  if (c.types[0].ndim() == 1 && c.types[0].elements() == 1) return {x.reshape({}).broadcast_to(lens)};
  return {c.build.add(op::broadcast{axis, lens}, x)};
}
value_list add_broadcast_with_dims(lowering& c) {
  c.expect(2);
  const ints lens = c.numbers(1);
  return {c.in(0).broadcast_to(broadcast(c.in(0).get_shape().lens, extents_of(lens)).value())};
}
// The leading extents of a matrix, spread to those of the other operand.
value_list add_broadcast_for_dot(lowering& c) {
  c.expect(2);
  const dims own = c.in(0).get_shape().lens, other = c.in(1).get_shape().lens;
  if (own.size() < 2 || other.size() < 2) raise(fault::of(errc::shape_mismatch, "rank of a matrix", 2, own));
  dims lead, rest;
  for (std::size_t d = 0; d + 2 < own.size(); ++d) lead.push_back(own[d]);
  for (std::size_t d = 0; d + 2 < other.size(); ++d) rest.push_back(other[d]);
  dims lens = broadcast(lead, rest).value();
  for (std::size_t d = own.size() - 2; d < own.size(); ++d) lens.push_back(own[d]);
  return {c.in(0).broadcast_to(lens)};
}

// 0 keeps an extent, -1 takes what is left.
value_list add_reshape(lowering& c) {
  c.expect(1, 2);
  const value x = c.in(0);
  if (c.size() == 2 && !c.op.values().at("dims").size()) {
    const ints wanted = c.numbers(1);
    return {x.reshape(extents_of(wanted))};
  }
  dims lens;
  dimension known = 1;
  std::optional<std::size_t> open;
  const auto given = c.long_integers("dims");
  for (const std::int64_t n : given) {
    if (n == -1) {
      if (open) raise(errc::invalid_argument, "one extent at most is -1");
      open = lens.size();
      lens.push_back(1);
      continue;
    }
    if (n == 0 && lens.size() >= x.rank())
      raise(fault::of(errc::invalid_argument, "an extent of 0 keeps one of the operand's", x.rank(), lens.size()));
    lens.push_back(n == 0 ? x.dim(static_cast<std::int64_t>(lens.size())) : dimension(n));
    known *= lens.back();
  }
  if (open && !(known == dimension(0))) lens[*open] = x.get_shape().elements() / known;
  return {x.reshape(lens)};
}

value_list add_transpose(lowering& c) {
  c.expect(1);
  ints permutation = c.integers("permutation");
  return {c.in(0).transpose(permutation)};
}
value_list add_squeeze(lowering& c) {
  c.expect(1);
  ints axes = axes_of(c, "axes");
  if (axes.empty())
    for (std::size_t d = 0; d < c.in(0).rank(); ++d)
      if (c.in(0).dim(static_cast<std::int64_t>(d)) == dimension(1)) axes.push_back(static_cast<std::int64_t>(d));
  return {axes.empty() ? c.in(0) : c.in(0).squeeze(axes)};
}
// A step divides the extent before the new axis, which has its size.
value_list add_unsqueeze(lowering& c) {
  c.expect(1);
  const ints axes = c.integers("axes"), steps = c.integers("steps");
  value x = c.in(0);
  if (c.types[0].ndim() == 1 && !c.types[0].dynamic() && c.types[0].scalar()) x = x.reshape({});
  if (steps.empty()) return {x.unsqueeze(axes)};
  if (steps.size() != axes.size())
    raise(fault::of(errc::invalid_argument, "a step for each axis", axes.size(), steps.size()));
  dims lens = x.get_shape().lens;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t at = normal_axis(axes[i], lens.size() + 1);
    if (at < 0) raise(fault::of(errc::invalid_argument, "the axis lies within the rank", lens.size(), axes[i]));
    lens.insert(static_cast<std::size_t>(at), steps[i]);
    if (steps[i] == 1) continue;
    if (at == 0 || !(lens[static_cast<std::size_t>(at) - 1] % steps[i] == dimension(0)))
      raise(fault::of(errc::invalid_argument, "a step divides the extent before its axis", lens, steps[i]));
    lens[static_cast<std::size_t>(at) - 1] = lens[static_cast<std::size_t>(at) - 1] / steps[i];
  }
  return {x.reshape(lens)};
}
value_list add_flatten(lowering& c) {
  c.expect(1);
  return {c.in(0).flatten(c.integer("axis"))};
}
value_list add_slice(lowering& c) {
  c.expect(1, 4);
  op::slice op;
  op.axes = c.integers("axes");
  op.starts = c.extents("starts");
  op.ends = c.extents("ends");
  // operands replace the attributes that are empty, in this order
  std::size_t next = 1;
  for (dims* list : {&op.starts, &op.ends})
    if (list->empty() && next < c.size()) {
      const ints given = c.numbers(next++);
      *list = extents_of(given);
    }
  if (op.axes.empty() && next < c.size()) op.axes = c.numbers(next++);
  if (op.axes.empty() || op.starts.size() != op.axes.size() || op.ends.size() != op.axes.size())
    raise(fault::of(errc::invalid_argument, "a slice has a start and an end for each axis", op.axes.size(),
                    op.starts.size()));
  return {c.in(0).slice(op)};
}
value_list add_step(lowering& c) {
  c.expect(1);
  op::slice op;
  op.axes = c.integers("axes");
  op.steps = c.integers("steps");
  for (const std::int64_t a : op.axes) {
    op.starts.push_back(0);
    op.ends.push_back(c.in(0).dim(a));
  }
  return {c.in(0).slice(op)};
}
value_list add_reverse(lowering& c) {
  c.expect(1);
  return {c.build.add(op::reverse{axes_of(c, "axes")}, c.in(0))};
}
value_list add_concat(lowering& c) {
  c.expect(1, static_cast<std::size_t>(-1));
  c.expect_same_type();
  const std::int64_t axis = c.axis("axis");
  if (c.size() == 1) return {c.in(0)};
  value_list parts;
  for (std::size_t i = 0; i < c.size(); ++i) parts.push_back(c.in(i));
  return {c.build.add(op::concat{axis}, parts)};
}
value_list add_pad(lowering& c) {
  c.expect(1);
  op::pad op;
  const auto pads = c.long_integers("pads");
  if (pads.size() != 2 * c.in(0).rank())
    raise(fault::of(errc::invalid_argument, "numbers of padding", 2 * c.in(0).rank(), pads.size()));
  for (const std::int64_t n : pads) op.pads.push_back(n);
  constexpr op::pad_mode modes[] = {op::pad_mode::constant, op::pad_mode::reflect, op::pad_mode::edge};
  op.mode = modes[c.word("mode", {"constant_pad", "reflect_pad", "edge_pad"})];
  if (op.mode != op::pad_mode::constant) return {c.build.add(op, c.in(0))};
  return {c.build.add(op, c.in(0), c.build.scalar(c.in(0).type(), c.real("value")))};
}
value_list add_copy(lowering& c) {
  c.expect(1, 2);
  return {c.in(0)};
}
// An element, spread.
value_list add_scalar(lowering& c) {
  c.expect(1);
  return {c.in(0).reshape({}).broadcast_to(c.extents("scalar_bcst_dims"))};
}

}  // namespace

operator_table view_operators() {
  static constexpr operator_row table[] = {
      {"broadcast", "axis: 0, out_lens: [], out_dyn_dims: []", add_broadcast},
      {"broadcast_for_dot", "", add_broadcast_for_dot},
      {"broadcast_with_dims", "", add_broadcast_with_dims},
      {"concat", "axis: 0", add_concat},
      {"contiguous", "", add_copy},
      {"flatten", "axis: 1", add_flatten},
      {"layout", "permutation: []", add_copy},
      {"multibroadcast", "out_lens: [], out_dyn_dims: []", add_multibroadcast},
      {"pad", "pads: [], value: 0.0, mode: constant_pad", add_pad},
      {"reshape", "dims: []", add_reshape},
      {"reshape_lazy", "dims: []", add_reshape},
      {"reverse", "axes: []", add_reverse},
      {"scalar", "scalar_bcst_dims: []", add_scalar},
      {"slice", "axes: [], starts: [], ends: []", add_slice},
      {"squeeze", "axes: []", add_squeeze},
      {"step", "axes: [], steps: []", add_step},
      {"transpose", "permutation: []", add_transpose},
      {"unsqueeze", "axes: [], steps: []", add_unsqueeze},
  };
  return table;
}

}  // namespace kiln::migraphx

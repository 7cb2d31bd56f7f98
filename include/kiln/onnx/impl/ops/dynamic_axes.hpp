#pragma once
#include "kiln/onnx/impl/ops/common.hpp"

// Axes that a run computes. Their number is known, and with it the rank of the result.
namespace kiln::onnx {

/// The axes of an input, one number or a list, as i64[n] in [0, rank); others are errors of the run.
value normalized_axes(node_context& c, std::size_t input, std::size_t rank);
/// bool[rank]: whether each axis is one of these.
value axis_flags(node_context& c, value axes, std::size_t rank);
/// The number of axes in a list, which must be a constant.
std::size_t axis_count(node_context& c, value axes);
/// The `count` extents whose flag is false, as symbols that the run binds.
dims remaining_extents(node_context& c, const dims& from, value flags, std::size_t count);

/// Concatenated tensors. A sum of very many symbolic lengths becomes a symbol.
value concatenated(node_context& c, std::int64_t axis, small_vector<value> parts);

/// ONNX Slice with axes or steps that a run computes.
value dynamic_slice(node_context& c, value x);

/// The result of one of two bodies, each over x, by a flag.
value branch_of(node_context& c, value flag, value x, module_graph then_body, module_graph else_body,
                const shape& result);

/// flag ? apply(x) : x. Extents that differ become symbols.
template <class Apply> value where_flag(node_context& c, value flag, value x, Apply&& apply) {
  const shape type = x.get_shape();
  builder changed, kept;
  const auto body = [&](builder& b, auto&& make) {
    const value in = b.input("x", type.type, type.lens);
    const value out = make(in);
    b.output(out);
    return out.get_shape();
  };
  const shape other = body(changed, apply);
  body(kept, [](value v) { return v; });
  shape result = type;
  for (std::size_t d = 0; d < type.rank(); ++d)
    if (!(other.lens[d] == type.lens[d])) result.lens[d] = c.bodies->fresh_symbol("extent");
  return branch_of(c, flag, x, std::move(changed.module()), std::move(kept.module()), result);
}

/// apply(x, axis) for each axis whose flag is true, one after the other.
template <class Apply> value along_flagged(node_context& c, value x, value flags, Apply&& apply) {
  for (std::size_t d = 0; d < x.rank(); ++d) {
    const auto a = static_cast<std::int64_t>(d);
    x = where_flag(c, element_at(flags, 0, a), x, [&](value v) { return apply(v, ints{a}); });
  }
  return x;
}

}  // namespace kiln::onnx

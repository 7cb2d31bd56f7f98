#pragma once
#include "kiln/onnx/impl/parse.hpp"

// Axes that only the run names. How many there are is known, and with it the result's rank.
namespace kiln::onnx {

/// Whether input i is given and its numbers are not known now.
inline bool is_open(const call& c, std::size_t i) {
  const literal* l = c.constant(i);
  return c.has(i) && (!l || l->has_symbols());
}

/// Axes as i64[n], one number or a list, counted from the front; one outside the rank is an error of the run.
value counted_axes(call& c, std::size_t input, std::size_t rank);
/// bool[rank]: which axes are among these.
value axis_flags(call& c, value axes, std::size_t rank);
/// How many axes a list has, which must be known.
std::size_t axis_count(call& c, value axes);
/// The extents at which a flag is false, `count` of them, as symbols that the run binds.
dims extents_left(call& c, const dims& from, value flags, std::size_t count);

/// Tensors one after the other. A sum of very many lengths that only the run knows is a number of the run as well.
value concatenated(call& c, std::int64_t axis, small_vector<value> parts);

/// A slice whose axes or steps are the run's.
value slice_in_run(call& c, value x);

/// The result of one body or the other, each over x.
value branch_of(call& c, value flag, value x, module_graph then_body, module_graph else_body, const shape& result);

/// x where the flag, one bool, does not hold, else what `apply(x)` builds; extents that it changes are the run's.
template <class Apply>
value where_flag(call& c, value flag, value x, Apply&& apply) {
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

/// Applies something along each axis whose flag holds, one after the other.
template <class Apply>
value along_flagged(call& c, value x, value flags, Apply&& apply) {
  for (std::size_t d = 0; d < x.rank(); ++d) {
    const auto a = static_cast<std::int64_t>(d);
    x = where_flag(c, flags.slice({{0}, {a}, {a + 1}, {}}).reshape({}), x, [&](value v) { return apply(v, ints{a}); });
  }
  return x;
}

}  // namespace kiln::onnx

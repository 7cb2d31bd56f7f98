#pragma once
#include <cstdint>

#include "kiln/pass/fusion_group.hpp"

namespace kiln {

namespace detail {

// A constant of several integers that f32 holds exactly, and so their sums with numbers of 16 bits, perhaps seen
// through views: as floats. Else an empty value.
template <class R> constexpr value_id floats_of_constant(R& r, value_id v) {
  if (r.is_kind(v, op_kind::view)) {
    const value_id x = floats_of_constant(r, r.input(v, 0));
    return x ? r.add(operation(r.producer(v).op), {x}) : value_id{};
  }
  const literal* const l = r.constant(v);
  constexpr std::int64_t most = 1 << 23, elements = 1 << 16;
  if (!l || l->has_symbols() || l->elements() < 2 || l->elements() > elements) return {};
  for (const std::int64_t x : l->template to<std::int64_t>())
    if (x < -most || x > most) return {};
  return r.add(op::convert{dtype::f32}, {v});
}

// The same difference or sum of bytes that a run computes and such a constant, of floats.
template <class R> constexpr value_id centered_in_floats(R& r, value_id v) {
  const auto* to = r.template get_if<op::convert>(v);
  if (!to || r.shape_of(v).type != dtype::f32) return {};
  const value_id sum = r.input(v, 0);
  const bool adds = r.template get_if<op::add>(sum);
  if (!(adds || r.template get_if<op::sub>(sum)) || r.shape_of(sum).type != dtype::i32 || !r.single_use(sum)) return {};
  for (const std::size_t k : {0, 1}) {
    if (k == 1 && !adds) break;
    const value_id wide = r.input(sum, k);
    if (!r.template get_if<op::convert>(wide)) continue;
    const value_id bytes = r.input(wide, 0);
    const dtype t = r.shape_of(bytes).type;
    if ((t != dtype::u8 && t != dtype::i8) || r.constant(bytes)) continue;
    const value_id zero = floats_of_constant(r, r.input(sum, 1 - k));
    if (!zero) continue;
    const value_id x = r.add(op::convert{dtype::f32}, {bytes});
    return adds ? r.add(op::add{}, {x, zero}) : r.add(op::sub{}, {x, zero});
  }
  return {};
}

}  // namespace detail

/// Numbers of eight bits less zero points of several channels, which floats alone read, are computed as floats, which
/// hold the differences exactly: the kernels of floats take fewer steps. Products have found theirs before.
template <class Program> constexpr pass_note zero_points_in_floats(Program& p) {
  pass_note note("zero_points_in_floats");
  rewrite_unfused(p, [&](auto& r, std::uint32_t i) {
    const value_id by = detail::centered_in_floats(r, {i, 0});
    if (!by) return;
    r.replace({i, 0}, by);
    note.count("zero point");
  });
  return note;
}

}  // namespace kiln

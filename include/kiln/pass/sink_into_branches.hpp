#pragma once
#include <algorithm>

#include "kiln/graph/matcher.hpp"
#include "kiln/pass/fusion_group.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/patterns.hpp"

namespace kiln {

namespace detail {

// Whether a max pooling's windows all hold a part of the image: else they are minus infinity. One with gaps may reach
// over it.
constexpr bool pools_only_inside(const op::pooling& p) {
  for (std::size_t d = 0; d < p.pads.size(); ++d)
    if (p.pads[d] >= p.lengths[d % p.lengths.size()]) return false;
  return std::all_of(p.dilation.begin(), p.dilation.end(), [](std::int64_t d) { return d == 1; });
}

// Whether relu leaves a value as it is.
template <class R> constexpr bool never_negative(const R& r, value_id v) {
  for (;;) {
    if (r.template get_if<op::relu>(v) || r.template get_if<op::sigmoid>(v)) return true;
    const auto* pooled = r.template get_if<op::pooling>(v);
    if (!pooled || (pooled->mode == op::pooling_mode::max && !pools_only_inside(*pooled))) return false;
    v = r.input(v, 0);
  }
}

// Whether a value that is read once is a contraction's or that of pointwise instructions after one.
template <class R> constexpr bool ends_contraction(const R& r, value_id v, int most_steps = 8) {
  if (!r.single_use(v) || v.result != 0) return false;
  if (r.is_kind(v, op_kind::contraction)) return true;
  if (most_steps == 0 || !r.is_kind(v, op_kind::pointwise)) return false;
  for (value_id in : r.producer(v).inputs)
    if (r.shape_of(in).lens == r.shape_of(v).lens && ends_contraction(r, in, most_steps - 1)) return true;
  return false;
}

template <class R> constexpr value_id pointwise_into_branches(R& r, value_id v) {
  if (r.producer(v).inputs.size() != 1) return {};
  const value_id joined = r.input(v, 0);
  if (!r.template get_if<op::concat>(joined) || !r.single_use(joined)) return {};
  const bool clips = r.template get_if<op::relu>(v) != nullptr;
  small_vector<value_id> branches = r.producer(joined).inputs;
  for (value_id b : branches)
    if (!(clips && never_negative(r, b)) && !ends_contraction(r, b)) return {};
  const auto pointwise = r.producer(v).op, concat = r.producer(joined).op;
  const text name = r.producer(v).name.empty() ? r.producer(joined).name : r.producer(v).name;
  for (value_id& b : branches) {
    if (clips && never_negative(r, b)) continue;
    const text of = r.producer(b).name;  // the whole's name would be that of several
    b = r.add(pointwise, {b}, of.view());
  }
  return r.add(concat, std::move(branches), name.view());
}

}  // namespace detail

/// Moves a pointwise instruction that alone reads a concatenation into its branches, where each can take it as a
/// contraction's epilogue or, of relu, is never negative: the joined value is then read and written once less.
template <class Program> constexpr pass_note sink_into_branches(Program& p) {
  pass_note note("sink_into_branches");
  for_each_unfused(p, [&](auto& m) {
    note.count(apply_rewrites(m, rewrite_kind<op_kind::pointwise>("sink", [](auto& r, value_id v) {
                                return detail::pointwise_into_branches(r, v);
                              })));
  });
  return note;
}

}  // namespace kiln

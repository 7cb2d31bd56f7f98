#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/patterns.hpp"

namespace kiln {

namespace detail {

// Whether a convolution computes every position from that position alone.
constexpr bool is_positionwise(const op::convolution& c, const dims& weights) {
  for (std::size_t d = 2; d < weights.size(); ++d)
    if (!(weights[d] == dimension(1))) return false;
  for (std::int64_t s : c.stride)
    if (s != 1) return false;
  for (std::int64_t n : c.pads)
    if (n != 0) return false;
  return true;
}

// Whether pooling leaves at most half of the positions.
constexpr bool leaves_half(const op::pooling& p, const shape& from, const shape& to) {
  std::int64_t steps = 1;
  for (std::int64_t s : p.stride) steps *= s;
  if (steps >= 2) return true;
  dimension before = 1, after = 2;
  for (std::size_t d = 2; d < from.lens.size(); ++d) {
    if (!from.lens[d].is_constant() || !to.lens[d].is_constant()) return false;
    before = before * from.lens[d], after = after * to.lens[d];
  }
  return after.value() <= before.value();
}

template <class R> constexpr value_id pooling_before_convolution(R& r, value_id v, pass_note& note) {
  const auto* pooled = r.template get_if<op::pooling>(v);
  const value_id y = r.input(v, 0);
  const auto* conv = r.template get_if<op::convolution>(y);
  if (pooled->mode != op::pooling_mode::average || !conv || !r.single_use(y)) return {};
  const value_id x = r.input(y, 0), w = r.input(y, 1);
  const shape weights = r.shape_of(w);
  constexpr std::int64_t fewest =
      4;  // outputs of each position: for fewer, pooling the inputs takes as long as they do
  if (weights.lens[0].is_constant() && weights.lens[0].value() < fewest) return {};
  if (!is_positionwise(*conv, weights.lens) || !leaves_half(*pooled, r.shape_of(y), r.shape_of(v))) return {};
  note.remark_on(r.shape_of(v).type, "an average of products becomes a product of averages: it rounds otherwise");
  const auto pooling_op = r.producer(v).op, convolution_op = r.producer(y).op;
  const value_id average = r.add(pooling_op, {x});
  return r.add(convolution_op, {average, w});
}

}  // namespace detail

/// Moves average pooling before a 1x1 convolution where it leaves at most half of the positions: both are linear, and
/// the convolution then computes that many fewer (the transitions of DenseNet; Huang et al., 2017).
template <class Program> constexpr pass_note move_pooling(Program& p) {
  pass_note note("move_pooling");
  for_each_module(p, [&](auto& m) {
    note.count(apply_rewrites(m, rewrite_each<op::pooling>("pooling_before_convolution", [&](auto& r, value_id v) {
                                return detail::pooling_before_convolution(r, v, note);
                              })));
  });
  return note;
}

}  // namespace kiln

#pragma once
#include "kiln/pass/fusion_body.hpp"

namespace kiln::detail {

/// The layout of a value through a chain of views, over the buffer of `source`; none where the chain does not start
/// there or asks for a copy.
template <class Rewriter> constexpr std::optional<layout> layout_over(const Rewriter& r, value_id v, value_id source) {
  if (v == source) return layout::standard(r.shape_of(v).lens);
  if (!r.is_kind(v, op_kind::view)) return std::nullopt;
  const auto in = layout_over(r, r.input(v, 0), source);
  if (!in) return std::nullopt;
  const auto out = r.producer(v).op.map(*in);
  if (!out) return std::nullopt;
  return *out;
}

/// The value before a view that only gives its extents other names: repeated to extents, each of which is its own or
/// can only turn out so, or expected to have them.
template <class Rewriter> constexpr value_id renamed_from(const Rewriter& r, value_id v) {
  if (!r.template get_if<op::expect_dims>(v)) {
    if (!r.template get_if<op::multibroadcast>(v)) return v;
    const dims &from = r.shape_of(r.input(v, 0)).lens, &to = r.shape_of(v).lens;
    if (from.size() != to.size()) return v;
    for (std::size_t d = 0; d < to.size(); ++d)
      if (!(from[d] == to[d]) && same(from[d], dimension(1)).value_or(true)) return v;
  }
  return r.input(v, 0);
}

/// Finds softmax(scores) v, where scores is a matrix product that is scaled by constants, summed with masks, or
/// replaced by a very negative constant where a condition hides a key. Everything inside is read inside only.
template <class Rewriter> class attention_pattern {
 public:
  /// A step from the scaled scores outwards: a summed mask, or keys hidden by a condition.
  struct mask_term {
    value_id mask;              ///< summed, or the condition
    value_id fill;              ///< what hidden scores become; empty for a sum
    bool hidden_where = false;  ///< whether a true condition hides
  };

  value_id scores, weights;  ///< the matrix products q k^T and softmax v
  double scale = 1;
  small_vector<mask_term> masks;

  constexpr explicit attention_pattern(const Rewriter& r) : r_(r) {}

  constexpr bool match(value_id v) {
    if (!r_.template get_if<op::dot>(v)) return false;
    weights = v;
    const value_id p = r_.input(v, 0);
    const std::size_t rank = r_.shape_of(p).rank();
    if (rank > 4 || !r_.single_use(p)) return false;
    value_id e;
    if (!softmax_quotient(p, e)) return false;
    // e = exp(x - max(x))
    if (!r_.template get_if<op::exp>(e) || r_.users(e.instruction).size() != 2) return false;
    const value_id shifted = r_.input(e, 0);
    if (!r_.template get_if<op::sub>(shifted) || !r_.single_use(shifted)) return false;
    const value_id x = r_.input(shifted, 0);
    if (r_.users(x.instruction).size() != 2 || !spread_reduction<op::reduce_max>(r_.input(shifted, 1), x)) return false;
    return match_scores(x, true);
  }

 private:
  // p = e / sum(e), or e times the reciprocal, which may be taken before or after the repetition
  constexpr bool softmax_quotient(value_id p, value_id& e) const {
    if (r_.template get_if<op::div>(p)) {
      e = r_.input(p, 0);
      return spread_reduction<op::reduce_sum>(r_.input(p, 1), e);
    }
    if (!r_.template get_if<op::mul>(p)) return false;
    for (std::size_t k = 0; k < 2; ++k) {
      e = r_.input(p, k);
      if (spread_reduction<op::reduce_sum>(r_.input(p, 1 - k), e, true)) return true;
    }
    return false;
  }

  /// Whether v is Op(of) along the last axis, repeated over the dims of `of` (or its reciprocal).
  template <class Op> constexpr bool spread_reduction(value_id v, value_id of, bool inverted = false) const {
    value_id at = v;
    const auto step = [&] {
      const bool one = r_.single_use(at);
      at = r_.input(at, 0);
      return one;
    };
    bool inverse = false;
    small_vector<value_id> views;
    for (;;) {
      if (r_.is_kind(at, op_kind::view)) {
        if (!step()) return false;
      } else if (inverted && !inverse && r_.template get_if<op::recip>(at)) {
        inverse = true;
        const value_id repeated = at;
        if (!step()) return false;
        if (!repeats_rows(v, repeated, r_.shape_of(of).lens, true)) return false;
        v = at;
      } else {
        break;
      }
    }
    const Op* op = r_.template get_if<Op>(at);
    if (!op || inverse != inverted || !r_.single_use(at) || !(r_.input(at, 0) == of)) return false;
    const auto axes = reduced_dims(op->axes, r_.shape_of(of).rank()).value();
    for (std::size_t d = 0; d < axes.size(); ++d)
      if (axes[d] != (d + 1 == axes.size()) && !(r_.shape_of(of).lens[d] == dimension(1))) return false;
    return repeats_rows(v, at, r_.shape_of(of).lens, inverted);
  }
  // Whether the views from `from` (rows of the full extents) to `v` only repeat along the last dim, or, where that
  // happens in two stretches, keep the rows' order.
  constexpr bool repeats_rows(value_id v, value_id from, const dims& full, bool partly) const {
    const auto l = layout_over(r_, v, from);
    if (!l || !(l->offset == dimension(0))) return false;
    if (partly && l->is_standard()) return true;
    if (!(l->lens == full)) return false;
    dimension step = 1;
    for (std::size_t d = full.size(); d-- > 0;) {
      if (full[d] == dimension(1)) continue;
      if (!(l->strides[d] == (d + 1 == full.size() ? dimension(0) : step))) return false;
      if (d + 1 != full.size()) step = step * full[d];
    }
    return true;
  }

  constexpr std::optional<double> scalar(value_id v) const {
    const auto l = repeated_constant(r_, v);
    if (!l) return std::nullopt;
    return uniform_value(*l);
  }

  constexpr bool match_scores(value_id v, bool first = false) {
    if (!first && !r_.single_use(v)) return false;
    if (r_.template get_if<op::dot>(v)) {
      scores = v;
      scale = 1;
      masks.clear();
      return true;
    }
    if (r_.template get_if<op::div>(v)) {
      const auto by = scalar(r_.input(v, 1));
      if (!by || !match_scores(r_.input(v, 0)) || !masks.empty()) return false;
      scale /= *by;
      return true;
    }
    const bool product = r_.template get_if<op::mul>(v) != nullptr;
    if (product || r_.template get_if<op::add>(v)) {
      for (std::size_t k = 0; k < 2; ++k) {
        const value_id other = r_.input(v, 1 - k);
        const auto by = product ? scalar(other) : std::optional(1.0);
        if (!by || !(product ? match_scores(r_.input(v, k)) && masks.empty() : match_masked(r_.input(v, k)))) continue;
        scale *= *by;
        if (!product) masks.push_back({other, {}, false});
        return true;
      }
      return false;
    }
    if (!r_.template get_if<op::where>(v)) return false;
    for (std::size_t k = 1; k < 3; ++k) {
      const auto fill = scalar(r_.input(v, k));
      constexpr double vanishes = -1e9;  // added to a score it swallows the score, so even a row of fills stays uniform
      if (!fill || *fill > vanishes || !match_masked(r_.input(v, 3 - k))) continue;
      masks.push_back({r_.input(v, 0), r_.input(v, k), k == 1});
      return true;
    }
    return false;
  }

  // Scores beside a mask, whose extents may have given names to theirs.
  constexpr bool match_masked(value_id v) {
    const value_id from = renamed_from(r_, v);
    return (from == v || r_.single_use(v)) && match_scores(from);
  }

  const Rewriter& r_;
};

}  // namespace kiln::detail

#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/pass/group_between_views.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/patterns.hpp"

namespace kiln {

namespace detail {

// Whether a view stands for a comparison that the run makes.
template <class R> constexpr bool compares(const R& r, value_id v) {
  const auto* expected = r.template get_if<op::expect_dims>(v);
  return expected && !(expected->to == r.shape_of(r.input(v, 0)).lens);
}

// One axis of a slice with its positions settled: element k of the result is element start + k * step.
struct axis_range {
  dimension start = 0, count = 0;
  std::int64_t step = 1;
};
constexpr axis_range range_of(const op::slice& s, std::size_t axis, const dims& lens) {
  for (std::size_t i = 0; i < s.starts.size(); ++i) {
    const std::int64_t at = s.axes.empty() ? static_cast<std::int64_t>(i) : normal_axis(s.axes[i], lens.size());
    if (at != static_cast<std::int64_t>(axis)) continue;
    op::slice one;
    one.starts.push_back(s.starts[i]);
    one.ends.push_back(s.ends[i]);
    if (!s.steps.empty()) one.steps.push_back(s.steps[i]);
    dims extent;
    extent.push_back(lens[axis]);
    const layout at_axis = one.map({extent, dims(1, dimension(1)), 0}).value();
    return {at_axis.offset, at_axis.lens[0], s.steps.empty() ? 1 : s.steps[i]};
  }
  return {0, lens[axis], 1};
}

// A slice with positive steps from its ranges; axes taken whole are left out.
constexpr op::slice slice_of(const inline_vector<axis_range, max_rank>& ranges, const dims& lens) {
  op::slice s;
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    const axis_range& r = ranges[d];
    if (r.step == 1 && r.start == dimension(0) && r.count == lens[d]) continue;
    s.axes.push_back(static_cast<std::int64_t>(d));
    s.starts.push_back(r.start);
    s.ends.push_back(r.count == dimension(0) ? r.start : r.start + (r.count - 1) * r.step + 1);
    s.steps.push_back(r.step);
  }
  return s;
}

constexpr dims with_leading_ones(const dims& lens, std::size_t rank) {
  dims out(rank - lens.size(), dimension(1));
  for (dimension d : lens) out.push_back(d);
  return out;
}

// Two views that cancel.
constexpr auto cancel_views = [](auto& r, value_id v) -> value_id {
  const value_id x = r.input(v, 0);
  if (!r.is_kind(x, op_kind::view) || compares(r, v) || compares(r, x)) return {};
  const value_id root = r.input(x, 0);
  const dims lens = r.shape_of(root).lens;
  if (!(r.shape_of(v).lens == lens)) return {};
  const auto inner = r.producer(x).op.map(layout::standard(lens));
  if (!inner) return {};
  const auto whole = r.producer(v).op.map(*inner);
  return whole && whole->is_standard() ? root : value_id{};
};

// Any view that keeps the elements' order as a reshape.
constexpr auto as_reshape = [](auto& r, value_id v) -> value_id {
  if (r.template get_if<op::reshape>(v) || compares(r, v)) return {};
  const value_id x = r.input(v, 0);
  const auto at = r.producer(v).op.map(layout::standard(r.shape_of(x).lens));
  if (!at || !at->is_standard() || !(product(at->lens) == product(r.shape_of(x).lens))) return {};
  return at->lens == r.shape_of(x).lens ? x : r.add(op::reshape{at->lens}, {x});
};

constexpr auto merge_reshapes = [](auto& r, value_id v) -> value_id {
  const value_id x = r.input(v, 0);
  if (!r.template get_if<op::reshape>(x)) return {};
  const dims to = r.shape_of(v).lens;
  const value_id root = r.input(x, 0);
  return r.shape_of(root).lens == to ? root : r.add(op::reshape{to}, {root});
};

// reshape(multibroadcast(x)) of one element is a broadcast.
constexpr auto reshape_of_scalar = [](auto& r, value_id v) -> value_id {
  const value_id x = r.input(v, 0);
  if (!r.template get_if<op::multibroadcast>(x)) return {};
  value_id one = r.input(x, 0);
  if (!(product(r.shape_of(one).lens) == dimension(1))) return {};
  if (r.shape_of(one).rank() != 0) one = r.add(op::reshape{}, {one});
  return r.add(op::multibroadcast{r.shape_of(v).lens}, {one});
};

constexpr auto as_multibroadcast = [](auto& r, value_id v) -> value_id {
  value_id x = r.input(v, 0);
  const op::broadcast b = *r.template get_if<op::broadcast>(v);
  const std::size_t rank = b.to.size();
  const auto first = static_cast<std::size_t>(b.axis < 0 ? b.axis + static_cast<std::int64_t>(rank) : b.axis);
  dims lens = r.shape_of(x).lens;
  while (first + lens.size() < rank) lens.push_back(1);
  if (!(r.shape_of(x).lens == lens)) x = r.add(op::reshape{lens}, {x});
  return r.add(op::multibroadcast{b.to}, {x});
};

// A broadcast of a broadcast, or of a reshape that adds or keeps leading extents of 1, which a broadcast adds itself.
constexpr auto merge_broadcasts = [](auto& r, value_id v) -> value_id {
  const value_id x = r.input(v, 0);
  if (!r.template get_if<op::multibroadcast>(x)) return {};
  return r.add(op::multibroadcast{r.shape_of(v).lens}, {r.input(x, 0)});
};
constexpr auto broadcast_of_leading_ones = [](auto& r, value_id v) -> value_id {
  const value_id x = r.input(v, 0);
  if (!r.template get_if<op::reshape>(x)) return {};
  const value_id root = r.input(x, 0);
  const dims own = r.shape_of(root).lens, lens = r.shape_of(x).lens;
  if (own.size() < lens.size() && with_leading_ones(own, lens.size()) == lens)
    return r.add(op::multibroadcast{r.shape_of(v).lens}, {root});
  const dims fewer = without_leading_ones(lens);
  if (fewer.size() == lens.size()) return {};
  return r.add(op::multibroadcast{r.shape_of(v).lens}, {r.add(op::reshape{fewer}, {root})});
};

// slice(slice(x)) as one slice; negative steps are left alone.
constexpr auto merge_slices = [](auto& r, value_id v) -> value_id {
  const value_id inner = r.input(v, 0);
  const auto* first = r.template get_if<op::slice>(inner);
  if (!first) return {};
  const op::slice a = *first, b = *r.template get_if<op::slice>(v);
  const value_id x = r.input(inner, 0);
  const dims lens = r.shape_of(x).lens, mid = r.shape_of(inner).lens;
  inline_vector<axis_range, max_rank> ranges;
  for (std::size_t d = 0; d < lens.size(); ++d) {
    const axis_range s = range_of(a, d, lens), t = range_of(b, d, mid);
    if (s.step < 0 || t.step < 0) return {};
    // the sum is read as a position again: it must be certain that it does not count from the end
    const dimension start = s.start + t.start * s.step;
    if (start.min() < 0) return {};
    ranges.push_back({start, t.count, s.step * t.step});
  }
  const op::slice merged = slice_of(ranges, lens);
  const value_id out = merged.axes.empty() ? x : r.add(merged, {x});
  return r.shape_of(out).lens == r.shape_of(v).lens ? out : value_id{};
};

// A slice or transpose of a broadcast: the view is taken of the operand, which is smaller, and may meet others there.
constexpr auto slice_before_broadcast = [](auto& r, value_id v) -> value_id {
  const value_id wide = r.input(v, 0);
  if (!r.template get_if<op::multibroadcast>(wide)) return {};
  const op::slice s = *r.template get_if<op::slice>(v);
  value_id x = r.input(wide, 0);
  const dims to = r.shape_of(wide).lens, own = with_leading_ones(r.shape_of(x).lens, to.size());
  inline_vector<axis_range, max_rank> ranges;
  for (std::size_t d = 0; d < to.size(); ++d) {
    const axis_range range = range_of(s, d, to);
    if (range.step < 0 || range.start.min() < 0) return {};
    if (!(own[d] == to[d]) && !(own[d] == dimension(1))) return {};
    ranges.push_back(own[d] == to[d] ? range : axis_range{0, own[d], 1});
  }
  const op::slice narrow = slice_of(ranges, own);
  if (!narrow.axes.empty()) {
    if (!(r.shape_of(x).lens == own)) x = r.add(op::reshape{own}, {x});
    x = r.add(narrow, {x});
  }
  return r.add(op::multibroadcast{r.shape_of(v).lens}, {x});
};
constexpr auto transpose_before_broadcast = [](auto& r, value_id v) -> value_id {
  const value_id wide = r.input(v, 0);
  if (!r.template get_if<op::multibroadcast>(wide)) return {};
  const op::transpose t = *r.template get_if<op::transpose>(v);
  value_id x = r.input(wide, 0);
  const dims own = with_leading_ones(r.shape_of(x).lens, r.shape_of(wide).rank());
  if (!(r.shape_of(x).lens == own)) x = r.add(op::reshape{own}, {x});
  return r.add(op::multibroadcast{r.shape_of(v).lens}, {r.add(t, {x})});
};

// transpose(transpose(x)) as one.
constexpr auto merge_transposes = [](auto& r, value_id v) -> value_id {
  const value_id inner = r.input(v, 0);
  const auto* first = r.template get_if<op::transpose>(inner);
  if (!first) return {};
  const std::size_t rank = r.shape_of(v).rank();
  const auto from = [rank](const op::transpose& t, std::size_t i) {
    return static_cast<std::size_t>(t.permutation.empty() ? static_cast<std::int64_t>(rank - 1 - i)
                                                          : normal_axis(t.permutation[i], rank));
  };
  const op::transpose& outer = *r.template get_if<op::transpose>(v);
  op::transpose merged;
  bool same_order = true;
  for (std::size_t i = 0; i < rank; ++i) {
    merged.permutation.push_back(static_cast<std::int64_t>(from(*first, from(outer, i))));
    same_order = same_order && merged.permutation.back() == static_cast<std::int64_t>(i);
  }
  const value_id x = r.input(inner, 0);
  return same_order ? x : r.add(merged, {x});
};

// view(f(view(x), c…)) where f is a group of pointwise ops that nothing else reads: f commutes with views, so when the
// two views cancel, or are both reshapes, f is computed at x.
template <class R> class pointwise_between_views {
 public:
  constexpr pointwise_between_views(R& r, value_id v) : r_(r), v_(v), group_(r, most_ops) {}

  constexpr value_id moved() {
    const value_id f = r_.input(v_, 0);
    if (!r_.is_kind(f, op_kind::pointwise) || !r_.single_use(f)) return {};
    transposes_ = r_.template get_if<op::transpose>(v_) != nullptr;
    if (!group_.collect(f, [&](value_id o) { return part_of(o); })) return {};
    const value_id inner = group_.inner();
    lens_ = r_.shape_of(r_.input(inner, 0)).lens;
    if (compares(r_, inner) || compares(r_, v_)) return {};
    const auto between = r_.producer(inner).op.map(layout::standard(lens_));
    if (!between) return {};
    const auto whole = r_.producer(v_).op.map(*between);
    const bool cancel = whole && whole->is_standard() && whole->lens == lens_;
    const bool reshapes = r_.template get_if<op::reshape>(inner) && r_.template get_if<op::reshape>(v_);
    if (!cancel && !reshapes) return {};
    for (const value_id member : group_.members()) {
      const auto step = r_.producer(member).op;
      const auto operands = r_.producer(member).inputs;
      small_vector<value_id> in;
      for (value_id o : operands) in.push_back(operand_at_x(o));
      group_.add_copy(r_.add(step, std::move(in)));
    }
    const value_id made = group_.copied();
    return cancel ? made : r_.add(op::reshape{r_.shape_of(v_).lens}, {made});
  }

 private:
  static constexpr std::size_t most_ops = 16;

  constexpr group_part part_of(value_id o) const {
    if (uniform_value(r_, o) || (transposes_ && viewed_constant(r_, o))) return group_part::operand;
    if (r_.is_kind(o, op_kind::view)) return group_part::inner;
    return r_.is_kind(o, op_kind::pointwise) ? group_part::member : group_part::none;
  }
  constexpr value_id operand_at_x(value_id o) {
    if (const value_id moved = group_.moved(o)) return moved;
    if (uniform_value(r_, o)) return group_.repeated(o, lens_);
    const auto transpose = r_.producer(v_).op;
    return r_.add(transpose, {o});
  }

  R& r_;
  value_id v_;
  bool transposes_ = false;
  dims lens_;
  group_between_views<R> group_;
};

}  // namespace detail

/// Chains of views become one view, or fewer: squeeze, unsqueeze, flatten and every view that only renames extents are
/// a reshape; broadcasts come last and are a multibroadcast; equal kinds merge; two views with a pointwise op of one
/// tensor between them cancel. Views move no data, so a chain is shortened even where its middle has other users.
template <class Program> constexpr pass_note simplify_views(Program& p) {
  pass_note note("simplify_views");
  for_each_module(p, [&](auto& m) {
    note.count(
        apply_rewrites(m, rewrite_kind<op_kind::view>("cancel", detail::cancel_views),
                       rewrite_kind<op_kind::view>("reshape", detail::as_reshape),
                       rewrite_each<op::reshape>("reshape_of_reshape", detail::merge_reshapes),
                       rewrite_each<op::reshape>("reshape_of_scalar", detail::reshape_of_scalar),
                       rewrite_each<op::broadcast>("broadcast", detail::as_multibroadcast),
                       rewrite_each<op::multibroadcast>("broadcast_of_broadcast", detail::merge_broadcasts),
                       rewrite_each<op::multibroadcast>("broadcast_of_leading_ones", detail::broadcast_of_leading_ones),
                       rewrite_each<op::transpose>("transpose_of_transpose", detail::merge_transposes),
                       rewrite_each<op::transpose>("transpose_of_broadcast", detail::transpose_before_broadcast),
                       rewrite_each<op::slice>("slice_of_slice", detail::merge_slices),
                       rewrite_each<op::slice>("slice_of_broadcast", detail::slice_before_broadcast),
                       rewrite_kind<op_kind::view>("through_pointwise", [](auto& r, value_id v) {
                         return detail::pointwise_between_views<std::remove_reference_t<decltype(r)>>(r, v).moved();
                       })));
  });
  return note;
}

}  // namespace kiln

#pragma once
#include <optional>

#include "kiln/graph/matcher.hpp"
#include "kiln/pass/group_between_views.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/patterns.hpp"

namespace kiln {

namespace detail {

/// Which dims of finer extents each dim of coarser ones merges: dim d has those from `first[d]` to `first[d + 1]`.
struct merged_dims {
  inline_vector<std::size_t, max_rank + 1> first;

  /// None where a dim of `coarse` is no product of adjacent whole dims of `fine`.
  static constexpr std::optional<merged_dims> find(const dims& coarse, const dims& fine) {
    merged_dims m;
    std::size_t at = 0;
    for (std::size_t d = 0; d < coarse.size(); ++d) {
      m.first.push_back(at);
      if (at < fine.size() && fine[at] == coarse[d]) {
        ++at;
        continue;
      }
      for (dimension n = 1; !(n == coarse[d]); n *= fine[at++])
        if (at == fine.size()) return std::nullopt;
    }
    while (at < fine.size() && fine[at] == dimension(1)) ++at;
    if (at != fine.size()) return std::nullopt;
    m.first.push_back(at);
    return m;
  }
};

/// reshape(f(reshape(x))) where f is a group of pointwise ops, reductions, and repetitions of what these give, that
/// nothing else reads, and the inner reshape merges dims of x: f is computed over the dims of x.
template <class R> class unmerged_group {
 public:
  constexpr unmerged_group(R& r, value_id v) : r_(r), v_(v), group_(r, most_ops) {}

  constexpr value_id moved() {
    const value_id f = r_.input(v_, 0);
    if (!(r_.is_kind(f, op_kind::pointwise) || r_.is_kind(f, op_kind::reduction)) || !r_.single_use(f)) return {};
    if (!group_.collect(f, [&](value_id o) { return part_of(o); })) return {};
    coarse_ = r_.shape_of(group_.inner()).lens;
    fine_ = r_.shape_of(r_.input(group_.inner(), 0)).lens;
    merged_ = merged_dims::find(coarse_, fine_);
    if (!merged_ || !reduces() || !have_extents()) return {};
    for (const value_id member : group_.members()) group_.add_copy(over_fine_dims(member));
    const dims to = r_.shape_of(v_).lens;
    const value_id made = group_.copied();
    return r_.shape_of(made).lens == to ? made : r_.add(op::reshape{to}, {made});
  }

 private:
  static constexpr std::size_t most_ops = 32;

  constexpr group_part part_of(value_id o) const {
    if (uniform_value(r_, o)) return group_part::operand;
    if (r_.template get_if<op::reshape>(o)) return group_part::inner;
    const bool joins = r_.is_kind(o, op_kind::reduction) || r_.is_kind(o, op_kind::pointwise) ||
                       r_.template get_if<op::multibroadcast>(o);
    return joins ? group_part::member : group_part::none;
  }
  constexpr bool reduces() const {
    for (const value_id member : group_.members())
      if (r_.is_kind(member, op_kind::reduction)) return true;
    return false;
  }
  // Whether each dim is that of the merged dims, or 1.
  constexpr bool has_extents(value_id v) const {
    const dims& lens = r_.shape_of(v).lens;
    if (lens.size() != coarse_.size()) return false;
    for (std::size_t d = 0; d < lens.size(); ++d)
      if (!(lens[d] == coarse_[d]) && !(lens[d] == dimension(1))) return false;
    return true;
  }
  // Whether each member and what it reads has such dims, constants as well, which a reduction may fold, and reductions
  // fold some.
  constexpr bool have_extents() const {
    for (const value_id member : group_.members()) {
      if (!has_extents(member)) return false;
      for (std::size_t k = 0; k < r_.producer(member).inputs.size(); ++k)
        if (!has_extents(r_.input(member, k))) return false;
      if (r_.is_kind(member, op_kind::reduction) && fine_axes(r_.producer(member).op.axes()).empty()) return false;
    }
    return true;
  }

  constexpr dims fine(const dims& lens) const {
    dims out = fine_;
    for (std::size_t d = 0; d < lens.size(); ++d)
      for (std::size_t k = merged_->first[d]; k < merged_->first[d + 1]; ++k)
        if (!(lens[d] == coarse_[d])) out[k] = 1;
    return out;
  }
  constexpr value_id operand(value_id o) {
    const value_id moved = group_.moved(o);
    return moved ? moved : group_.repeated(o, fine(r_.shape_of(o).lens));
  }
  constexpr value_id over_fine_dims(value_id member) {
    auto step = r_.producer(member).op;
    const text name = r_.producer(member).name;
    const auto operands = r_.producer(member).inputs;
    const dims lens = fine(r_.shape_of(member).lens);
    small_vector<value_id> in;
    for (const value_id o : operands) in.push_back(operand(o));
    if (step.kind() == op_kind::view) return r_.add(op::multibroadcast{lens}, std::move(in), name.view());
    // an op shows its axes to readers alone, whatever struct it is; this one is a copy
    if (step.kind() == op_kind::reduction) const_cast<ints&>(step.axes()) = fine_axes(step.axes());
    return r_.add(step, std::move(in), name.view());
  }
  constexpr ints fine_axes(const ints& axes) const {
    const auto folded = reduced_dims(axes, coarse_.size()).value();
    ints out;
    for (std::size_t d = 0; d < folded.size(); ++d)
      for (std::size_t k = merged_->first[d]; folded[d] && k < merged_->first[d + 1]; ++k)
        out.push_back(static_cast<std::int64_t>(k));
    return out;
  }

  R& r_;
  value_id v_;
  group_between_views<R> group_;
  dims coarse_, fine_;
  std::optional<merged_dims> merged_;
};

}  // namespace detail

/// Computes reductions and normalizations of merged dims, as of an image's channels and pixels that a reshape makes one
/// dim of, over the dims themselves, where a reshape follows: what is before, between and after them then has the
/// extents of an image, so that one kernel computes it and layouts meet.
template <class Program> constexpr pass_note reduce_before_reshape(Program& p) {
  pass_note note("reduce_before_reshape");
  for_each_module(p, [&](auto& m) {
    note.count(apply_rewrites(m, rewrite_each<op::reshape>("group", [](auto& r, value_id v) {
                                return detail::unmerged_group<std::remove_reference_t<decltype(r)>>(r, v).moved();
                              })));
  });
  return note;
}

}  // namespace kiln

#pragma once
#include "kiln/pass/constants.hpp"

namespace kiln::detail {

/// What a value is to a group of instructions between two views: not of it, a constant of one number or another operand
/// that may stand outside, the view that the group is computed of, or a member.
enum class group_part : std::uint8_t { none, operand, inner, member };

/// The instructions of one result that a value is computed by of one view, which nothing else reads. It is computed
/// elsewhere by a copy of each, operands first: `moved` says what a copy reads for what the original reads.
template <class R> class group_between_views {
 public:
  /// A group has at most so many members: more are not looked at.
  constexpr group_between_views(R& r, std::size_t most) : r_(r), most_(most) {}

  /// Whether `f` is made by such a group; `part_of(value)` says what may join.
  template <class PartOf> constexpr bool collect(value_id f, const PartOf& part_of) {
    return visit(f, part_of) && inner_ && only_used_inside();
  }
  constexpr value_id inner() const { return inner_; }
  /// Operands first, what they make last.
  constexpr const small_vector<value_id>& members() const { return members_; }

  constexpr void add_copy(value_id made) { made_.push_back(made); }
  /// The last copy.
  constexpr value_id copied() const { return made_.back(); }
  /// What copies read for the inner view or a member; empty for an operand from outside.
  constexpr value_id moved(value_id o) const {
    if (o == inner_) return r_.input(inner_, 0);
    const std::size_t k = place(o);
    return k < made_.size() ? made_[k] : value_id{};
  }
  /// A constant of one number, with these extents.
  constexpr value_id repeated(value_id o, const dims& lens) {
    while (r_.is_kind(o, op_kind::view)) o = r_.input(o, 0);
    const value_id scalar = r_.add_literal(laid_out(*r_.constant(o), {}));
    return lens.empty() ? scalar : r_.add(op::multibroadcast{lens}, {scalar});
  }

 private:
  constexpr std::size_t place(value_id o) const {
    std::size_t k = 0;
    while (k < members_.size() && !(members_[k] == o)) ++k;
    return k;
  }
  template <class PartOf> constexpr bool visit(value_id o, const PartOf& part_of) {
    const group_part part = o == inner_ ? group_part::inner : part_of(o);
    if (part == group_part::operand) return true;
    if (part == group_part::inner) {
      if (!inner_) inner_ = o;
      return inner_ == o;
    }
    if (part == group_part::none) return false;
    if (place(o) < members_.size()) return true;
    // counted before its operands are looked at: a chain of any length takes no more stack than a group
    if (seen_ == most_) return false;
    ++seen_;
    for (std::size_t k = 0; k < r_.producer(o).inputs.size(); ++k)
      if (!visit(r_.input(o, k), part_of)) return false;
    members_.push_back(o);
    return true;
  }
  constexpr bool only_used_inside() const {
    for (std::size_t k = 0; k + 1 < members_.size(); ++k)
      for (const std::uint32_t u : r_.users(members_[k].instruction))
        if (u == R::output_user || place({u, 0}) == members_.size()) return false;
    return true;
  }

  R& r_;
  std::size_t most_, seen_ = 0;
  value_id inner_;
  small_vector<value_id> members_, made_;
};

}  // namespace kiln::detail

#pragma once
#include "kiln/pass/fusion_group.hpp"
#include "kiln/pass/row_parts.hpp"

namespace kiln {

namespace detail {

/// A concatenation of all parts of one value in another order, each through unary pointwise ops, and the pointwise ops
/// that alone read it.
template <class R> class rotation {
 public:
  constexpr rotation(R& r, std::uint32_t concat) : r_(r), concat_{concat, 0} {}

  /// Computes the last of the pointwise ops part by part; false where there is none, or this is no rotation.
  constexpr bool halve() {
    if (!is_rotation() || !collect()) return false;
    const value_id last = chain_.back();
    small_vector<value_id> parts;
    for (std::size_t k = 0; k < count_; ++k) {
      made_.clear();
      parts.push_back(part(last, k));
    }
    const auto joined = r_.producer(concat_).op;
    r_.replace(last, r_.add(joined, std::move(parts)));
    return true;
  }

 private:
  static constexpr std::size_t most_ops = 8;
  struct done {
    value_id whole, part;
  };

  constexpr bool is_rotation() {
    const auto* joined = r_.template get_if<op::concat>(concat_);
    const auto rank = static_cast<std::int64_t>(r_.shape_of(concat_).rank());
    if (!joined || rank == 0 || normal_axis(joined->axis, r_.shape_of(concat_).rank()) != rank - 1) return false;
    count_ = r_.producer(concat_).inputs.size();
    value_id whole;
    bool moved = false;
    inline_vector<bool, 4> taken(4, false);
    for (std::size_t k = 0; k < count_; ++k) {
      value_id v = r_.input(concat_, k);
      while (r_.is_kind(v, op_kind::pointwise) && r_.producer(v).inputs.size() == 1 && r_.single_use(v))
        v = r_.input(v, 0);
      const auto part = part_taken(r_, v);
      if (!part || part->count != static_cast<std::int64_t>(count_)) return false;
      const auto index = static_cast<std::size_t>(part->index);
      if ((whole && !(r_.input(v, 0) == whole)) || taken[index]) return false;
      whole = r_.input(v, 0);
      taken[index] = true;
      moved = moved || index != k;
    }
    return moved;
  }

  // The chain of pointwise ops from the concatenation on.
  constexpr bool collect() {
    for (value_id v = concat_; r_.single_use(v) && chain_.size() < most_ops;) {
      const std::uint32_t user = *r_.users(v.instruction).begin();
      if (user == R::output_user || !r_.is_kind({user, 0}, op_kind::pointwise)) break;
      chain_.push_back(v = {user, 0});
    }
    return !chain_.empty();
  }
  constexpr bool in_chain(value_id v) const {
    for (value_id c : chain_)
      if (c == v) return true;
    return false;
  }

  // What nothing else reads is computed part by part as well.
  constexpr value_id part(value_id v, std::size_t k) {
    if (v == concat_) return r_.input(v, k);
    for (const done& d : made_)
      if (d.whole == v) return d.part;
    const bool own = in_chain(v) || (r_.is_kind(v, op_kind::pointwise) && r_.single_use(v) && made_.size() < most_ops);
    value_id made;
    if (own) {
      const auto op = r_.producer(v).op;
      const small_vector<value_id> operands = r_.producer(v).inputs;
      small_vector<value_id> in;
      for (value_id o : operands) in.push_back(part(o, k));
      made = r_.add(op, std::move(in));
    } else {
      made = take_part(r_, v, {static_cast<std::int64_t>(k), static_cast<std::int64_t>(count_)});
    }
    made_.push_back({v, made});
    return made;
  }

  R& r_;
  value_id concat_;
  std::size_t count_ = 0;
  small_vector<value_id> chain_;
  small_vector<done> made_;
};

}  // namespace detail

/// Rotary embeddings as exporters write them, x * cos + rotate_half(x) * sin, are computed half by half, and the halves
/// joined: a half is a view of x, where the rotated x, concat(-x2, x1), is a copy and a kernel of its own.
template <class Program> constexpr pass_note halve_rotations(Program& p) {
  pass_note note("halve_rotations");
  for_each_module(p, [&](auto& m) {
    rewriter<std::remove_cvref_t<decltype(m)>> r(m);
    const std::uint32_t count = r.size();
    for (std::uint32_t i = 0; i < count; ++i)
      if (!r.users(i).empty() && detail::rotation(r, i).halve()) note.count("rotation");
  });
  return note;
}

}  // namespace kiln

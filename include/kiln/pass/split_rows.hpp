#pragma once
#include "kiln/pass/fusion_group.hpp"
#include "kiln/pass/row_parts.hpp"

namespace kiln {

namespace detail {

/// What joins the reductions of a row's parts to the reduction of the row.
enum class joined_by : std::uint8_t { nothing, sum, mean, maximum };

template <class Operation> constexpr joined_by joined(const Operation& op, dtype t) {
  if (op.template is<op::reduce_sum>()) return joined_by::sum;
  if (op.template is<op::reduce_mean>() && is_float(t)) return joined_by::mean;
  return op.template is<op::reduce_max>() ? joined_by::maximum : joined_by::nothing;
}

/// A value that is read in parts of its last axis alone, and the ops that compute it from rows: pointwise ops,
/// reductions over that axis, and the repetition of their results. Before the parts are taken, the leading extents may
/// be renamed, and then permuted.
template <class R> class split_row {
 public:
  constexpr split_row(R& r, value_id v) : r_(r), whole_(v), full_(r.shape_of(v).lens), row_(row_of(full_)) {}

  /// Computes the value part by part; false where that makes nothing of one kernel.
  constexpr bool split() {
    if (!r_.is_kind(whole_, op_kind::pointwise) || !find_parts() || !find_members()) return false;
    to_ = r_.shape_of(slices_[0]).lens;
    for (value_id s : slices_) {
      const auto taken = part_taken(r_, s);
      r_.replace(s, part(whole_, taken->index));
    }
    return true;
  }
  /// Whether a mean was joined from means.
  constexpr bool averages() const { return averages_; }

 private:
  static constexpr std::size_t most_members = 24;
  static constexpr std::int64_t row_value = -1;  // the index of what has one element per row
  struct done {
    value_id whole;
    std::int64_t index;
    value_id made;
  };

  static constexpr dims row_of(dims lens) {
    if (!lens.empty()) lens[lens.size() - 1] = 1;
    return lens;
  }
  static constexpr bool contains(const small_vector<value_id>& list, value_id v) {
    for (value_id m : list)
      if (m == v) return true;
    return false;
  }
  // The only reader of a value, if it is an Op.
  template <class Op> constexpr value_id read_by(value_id v) const {
    if (!r_.single_use(v)) return {};
    const std::uint32_t user = *r_.users(v.instruction).begin();
    return user != R::output_user && r_.template get_if<Op>({user, 0}) ? value_id{user, 0} : value_id{};
  }

  // The slices that read the value, all of parts of one length, one of which meets a pointwise op.
  constexpr bool find_parts() {
    value_id read = whole_;
    if (const value_id v = read_by<op::reshape>(read)) {
      const dims& to = r_.shape_of(v).lens;
      if (to.empty() || !(to[to.size() - 1] == full_[full_.size() - 1])) return false;
      read = renamed_ = v;
    }
    if (const value_id v = read_by<op::transpose>(read)) {
      const std::size_t rank = r_.shape_of(v).rank();
      const ints& from = r_.template get_if<op::transpose>(v)->permutation;
      if (from.empty() || normal_axis(from[rank - 1], rank) != static_cast<std::int64_t>(rank) - 1) return false;
      read = turned_ = v;
    }
    bool useful = false;
    for (std::uint32_t u : r_.users(read.instruction)) {
      if (u == R::output_user) return false;
      const auto taken = part_taken(r_, {u, 0});
      if (!taken || (count_ != 0 && taken->count != count_)) return false;
      count_ = taken->count;
      if (!contains(slices_, {u, 0})) slices_.push_back({u, 0});
      for (std::uint32_t reader : r_.users(u))
        useful = useful || (reader != R::output_user && r_.is_kind({reader, 0}, op_kind::pointwise));
    }
    return useful;
  }

  // Members are read by members alone: else they would be computed twice.
  constexpr bool find_members() {
    for (bool again = true; again;) {
      members_.clear();
      reduces_ = averages_ = again = false;
      if (!collect(whole_)) return false;
      for (value_id m : members_)
        if (!(m == whole_) && read_elsewhere(m)) {
          outside_.push_back(m);
          again = true;
        }
    }
    return reduces_;
  }
  constexpr bool read_elsewhere(value_id v) const {
    for (std::uint32_t u : r_.users(v.instruction))
      if (u == R::output_user || !contains(members_, {u, 0})) return true;
    return false;
  }
  constexpr bool collect(value_id v) {
    if (contains(members_, v) || contains(outside_, v) || !computes_rows(v)) return true;
    if (members_.size() == most_members) return false;
    members_.push_back(v);
    if (r_.is_kind(v, op_kind::reduction)) {
      reduces_ = true;
      averages_ = averages_ || joined(r_.producer(v).op, r_.shape_of(v).type) == joined_by::mean;
    }
    for (std::size_t k = 0; k < r_.producer(v).inputs.size(); ++k)
      if (!collect(r_.input(v, k))) return false;
    return true;
  }
  constexpr bool computes_rows(value_id v) const {
    const dims& lens = r_.shape_of(v).lens;
    if (r_.is_kind(v, op_kind::pointwise)) return lens == full_ || lens == row_;
    if (r_.template get_if<op::multibroadcast>(v)) return lens == full_ && r_.shape_of(r_.input(v, 0)).lens == row_;
    if (!r_.is_kind(v, op_kind::reduction) || !(lens == row_) || !(r_.shape_of(r_.input(v, 0)).lens == full_))
      return false;
    const auto folded = reduced_dims(r_.producer(v).op.axes(), full_.size());
    for (std::size_t d = 0; d + 1 < full_.size(); ++d)
      if ((*folded)[d]) return false;
    return joined(r_.producer(v).op, r_.shape_of(v).type) != joined_by::nothing;
  }

  // A part of a value, or the value itself where it has one element per row.
  constexpr value_id part(value_id v, std::int64_t index) {
    if (r_.shape_of(v).lens == row_) index = row_value;
    for (const done& d : made_)
      if (d.whole == v && d.index == index) return d.made;
    const value_id made = contains(members_, v) ? computed(v, index) : viewed(v, index);
    made_.push_back({v, index, made});
    return made;
  }
  constexpr value_id computed(value_id v, std::int64_t index) {
    if (r_.is_kind(v, op_kind::reduction)) return reduced(v);
    if (r_.is_kind(v, op_kind::view)) {
      const value_id row = part(r_.input(v, 0), row_value);
      return r_.add(op::multibroadcast{to_}, {row});
    }
    const auto op = r_.producer(v).op;
    const text name = r_.producer(v).name;
    small_vector<value_id> in = r_.producer(v).inputs;
    for (value_id& o : in) o = part(o, index);
    return r_.add(op, std::move(in), name.view());
  }
  constexpr value_id reduced(value_id v) {
    const auto op = r_.producer(v).op;
    const joined_by how = joined(op, r_.shape_of(v).type);
    const value_id of = r_.input(v, 0);
    const auto axis = static_cast<std::int64_t>(to_.size()) - 1;
    value_id all;
    for (std::int64_t k = 0; k < count_; ++k) {
      value_id one = part(of, k);
      if (how == joined_by::mean) {
        one = r_.add(op::reduce_mean{{axis}}, {one});
        one = r_.add(op::mul{}, {one, scalar_like(r_, one, 1 / static_cast<double>(count_))});
        all = all ? r_.add(op::add{}, {all, one}) : one;
      } else if (how == joined_by::sum) {
        one = r_.add(op::reduce_sum{{axis}}, {one});
        all = all ? r_.add(op::add{}, {all, one}) : one;
      } else {
        one = r_.add(op::reduce_max{{axis}}, {one});
        all = all ? r_.add(op::max{}, {all, one}) : one;
      }
    }
    return all;
  }

  // A part of an operand. Of what is repeated for all rows, the part is taken first.
  constexpr value_id viewed(value_id v, std::int64_t index) {
    if (r_.template get_if<op::multibroadcast>(v)) {
      value_id from = r_.input(v, 0);
      const dims own = r_.shape_of(from).lens;
      if (product(own) == (own.empty() ? dimension(1) : own[own.size() - 1])) {
        const bool one = product(own) == dimension(1);
        from = reshaped(from, one ? dims{} : dims{own[own.size() - 1]});
        if (!one) from = take_part(r_, from, {index, count_});
        return r_.add(op::multibroadcast{index == row_value ? row_of(to_) : to_}, {from});
      }
    }
    if (renamed_) v = reshaped(v, index == row_value ? row_of(r_.shape_of(renamed_).lens) : r_.shape_of(renamed_).lens);
    if (turned_) {
      const auto turn = r_.producer(turned_).op;
      v = r_.add(turn, {v});
    }
    return index == row_value ? v : take_part(r_, v, {index, count_});
  }
  constexpr value_id reshaped(value_id v, const dims& lens) {
    return r_.shape_of(v).lens == lens ? v : r_.add(op::reshape{lens}, {v});
  }

  R& r_;
  value_id whole_, renamed_, turned_;  // turned_ views renamed_, which views whole_; either may be missing
  std::int64_t count_ = 0;
  dims full_, row_, to_;  // extents of full values, of those with one element per row, and of a part
  bool reduces_ = false, averages_ = false;
  small_vector<value_id> slices_, members_, outside_;
  small_vector<done> made_;
};

}  // namespace detail

/// Rows that are computed with reductions and then read in equal parts, as a rotary embedding reads what RMS
/// normalization gives: each part becomes a value of its own, and reductions of the parts are joined. All values then
/// have the extents of a part, parts of operands are views, and `fuse_reduce` makes one kernel of the rows and of what
/// reads them.
template <class Program> constexpr pass_note split_rows(Program& p) {
  pass_note note("split_rows");
  rewrite_unfused(p, [&](auto& r, std::uint32_t i) {
    if (!detail::part_taken(r, {i, 0})) return;
    value_id from = r.input({i, 0}, 0);
    if (r.template get_if<op::transpose>(from)) from = r.input(from, 0);
    if (r.template get_if<op::reshape>(from)) from = r.input(from, 0);
    const dtype t = r.shape_of(from).type;
    detail::split_row<std::remove_reference_t<decltype(r)>> row(r, from);
    if (!row.split()) return;
    note.count("row");
    if (row.averages()) note.remark_on(t, "the mean of a row becomes a sum of its parts' means: it rounds otherwise");
  });
  return note;
}

}  // namespace kiln

#pragma once
#include "kiln/pass/fusion_group.hpp"

namespace kiln {

namespace detail {

/// The way from a row to what reads it at other positions, as a rotary embedding does: leading extents are renamed and
/// permuted, the last one is split in two, and either half may be reversed.
struct row_split {
  dims lens;               ///< the row's extents after leading ones are renamed
  ints permutation;        ///< of those; empty: as they stand. The last one stays the last
  dimension outer, inner;  ///< the last extent in two
  ints reversed;           ///< axes of these that are reversed: -2, -1
};

/// The reduction with other axes.
template <class Operation> constexpr Operation with_axes(Operation op, const ints& axes) {
  const_cast<ints&>(op.axes()) = axes;  // `op` is a copy of our own; the waist gives them to read
  return op;
}

/// Computes rows at split extents: pointwise ops, reductions over the last axis, and repetitions of either are made
/// anew over views of what they read, so that all of it, and what reads the split row, is one row body.
template <class R> class split_row {
 public:
  constexpr split_row(R& r, value_id row, const row_split& s)
      : r_(r), row_(row), split_(s), full_(r.shape_of(row).lens) {
    for (std::size_t d = 0; d < s.lens.size(); ++d)
      target_.push_back(s.lens[s.permutation.empty() ? d : static_cast<std::size_t>(s.permutation[d])]);
    target_.pop_back();
    target_.push_back(s.outer);
    target_.push_back(s.inner);
  }

  /// Whether a reduction over the row decides its elements, and each operand can be viewed in the same way.
  constexpr bool serves() { return can_move(row_) && reduces_; }
  constexpr value_id moved() { return moved(row_, !split_.reversed.empty()); }

 private:
  static constexpr std::size_t most_ops = 16;
  struct made {
    value_id of, at;
    bool reversed = false;
  };

  constexpr bool has_row_extents(value_id v) const {
    const dims& lens = r_.shape_of(v).lens;
    if (lens.size() != full_.size() || !(lens[lens.size() - 1] == dimension(1))) return false;
    for (std::size_t d = 0; d + 1 < lens.size(); ++d)
      if (!(lens[d] == full_[d])) return false;
    return true;
  }
  constexpr bool has_full_extents(value_id v) const { return r_.shape_of(v).lens == full_; }
  // Of a value that is repeated over the rows: its only extent that may differ from 1 is the last.
  constexpr bool is_vector(value_id v) const {
    const dims& lens = r_.shape_of(v).lens;
    for (std::size_t d = 0; d + 1 < lens.size(); ++d)
      if (!(lens[d] == dimension(1))) return false;
    return true;
  }
  // Of a value that is repeated over the rows: one element for each row, which the row itself may decide. With one row
  // alone, it looks like a vector of one element.
  constexpr bool repeats_row(value_id v) const {
    return has_row_extents(v) && (!is_vector(v) || !r_.template get_if<op::multibroadcast>(v));
  }
  constexpr bool folds_row(value_id v) const {
    const auto axes = reduced_dims(r_.producer(v).op.axes(), full_.size());
    if (!axes || !has_full_extents(r_.input(v, 0))) return false;
    for (std::size_t d = 0; d < full_.size(); ++d)
      if ((*axes)[d] != (d + 1 == full_.size()) && !(full_[d] == dimension(1))) return false;
    return true;
  }

  constexpr bool can_move(value_id v) {
    if (r_.is_kind(v, op_kind::pointwise)) {
      if (++ops_ > most_ops) return false;
      for (value_id in : r_.producer(v).inputs)
        if (!can_move(in)) return false;
      return true;
    }
    if (r_.is_kind(v, op_kind::reduction) && has_row_extents(v)) {
      if (!folds_row(v) || ++ops_ > most_ops) return false;
      reduces_ = true;
      return can_move(r_.input(v, 0));
    }
    if (r_.template get_if<op::multibroadcast>(v)) {
      const value_id from = r_.input(v, 0);
      return repeats_row(from) ? can_move(from) : is_vector(from);
    }
    return has_full_extents(v) || has_row_extents(v);
  }

  constexpr value_id moved(value_id v, bool reversed) {
    const bool row = has_row_extents(v) && !has_full_extents(v);
    if (row) reversed = false;  // one element a row
    for (const made& m : made_)
      if (m.of == v && m.reversed == reversed) return m.at;
    const value_id at = make(v, reversed, row);
    made_.push_back({v, at, reversed});
    return at;
  }
  constexpr value_id make(value_id v, bool reversed, bool row) {
    const auto op = r_.producer(v).op;
    const text name = r_.producer(v).name;
    if (r_.is_kind(v, op_kind::pointwise)) {
      small_vector<value_id> inputs = r_.producer(v).inputs;
      for (value_id& in : inputs) in = moved(in, reversed);
      return r_.add(op, std::move(inputs), name.view());
    }
    if (r_.is_kind(v, op_kind::reduction) && row) {
      const auto last = static_cast<std::int64_t>(target_.size());
      const value_id in = moved(r_.input(v, 0), false);
      return r_.add(with_axes(op, {last - 2, last - 1}), {in}, name.view());
    }
    if (!r_.template get_if<op::multibroadcast>(v)) return viewed(v, reversed, row);
    dims lens = target_;
    if (row) lens[lens.size() - 2] = lens[lens.size() - 1] = 1;
    const value_id from = r_.input(v, 0);
    return r_.add(op::multibroadcast{lens}, {repeats_row(from) ? moved(from, reversed) : split_vector(from, reversed)});
  }

  // A value of row or full extents.
  constexpr value_id viewed(value_id v, bool reversed, bool row) {
    dims lens = split_.lens;
    if (row) lens[lens.size() - 1] = 1;
    v = reshaped(v, lens);
    if (!split_.permutation.empty()) v = r_.add(op::transpose{split_.permutation}, {v});
    dims to = target_;
    if (row) to[to.size() - 2] = to[to.size() - 1] = 1;
    return reverse(reshaped(v, to), reversed);
  }
  constexpr value_id split_vector(value_id v, bool reversed) {
    const dims& own = r_.shape_of(v).lens;
    if (own.empty() || own[own.size() - 1] == dimension(1)) return reshaped(v, {});
    return reverse(reshaped(v, {split_.outer, split_.inner}), reversed);
  }
  constexpr value_id reshaped(value_id v, const dims& lens) {
    return r_.shape_of(v).lens == lens ? v : r_.add(op::reshape{lens}, {v});
  }
  constexpr value_id reverse(value_id v, bool reversed) {
    if (!reversed) return v;
    ints axes;
    for (std::int64_t a : split_.reversed) axes.push_back(a + static_cast<std::int64_t>(r_.shape_of(v).rank()));
    return r_.add(op::reverse{axes}, {v});
  }

  R& r_;
  value_id row_;
  row_split split_;
  dims full_, target_;
  std::size_t ops_ = 0;
  bool reduces_ = false;
  small_vector<made> made_;
};

// Whether a reshape keeps the last extent, or splits it in two.
constexpr bool keeps_last(const dims& from, const dims& to) {
  return !from.empty() && !to.empty() && from[from.size() - 1] == to[to.size() - 1];
}
constexpr bool splits_last(const dims& from, const dims& to) {
  if (from.empty() || to.size() != from.size() + 1) return false;
  for (std::size_t d = 0; d + 1 < from.size(); ++d)
    if (!(from[d] == to[d])) return false;
  return to[to.size() - 2].is_constant() && to[to.size() - 1].is_constant();
}

// Rows that pointwise ops read split, through views; empty where `v` is no such view.
template <class R> constexpr value_id at_split_extents(R& r, value_id v) {
  bool read = false;
  for (std::uint32_t u : r.users(v.instruction)) {
    if (u == R::output_user) return {};
    read = read || r[u].op.kind() == op_kind::pointwise;
  }
  if (!read) return {};
  row_split s;
  if (const auto* turned = r.template get_if<op::reverse>(v)) {
    const std::size_t rank = r.shape_of(v).rank();
    for (std::int64_t axis : turned->axes) {
      s.reversed.push_back(normal_axis(axis, rank) - static_cast<std::int64_t>(rank));
      if (s.reversed.back() < -2) return {};
    }
    v = r.input(v, 0);
  }
  if (!r.template get_if<op::reshape>(v)) return {};
  const dims to = r.shape_of(v).lens;
  v = r.input(v, 0);
  if (!splits_last(r.shape_of(v).lens, to)) return {};
  s.outer = to[to.size() - 2], s.inner = to[to.size() - 1];
  if (const auto* permuted = r.template get_if<op::transpose>(v)) {
    const auto rank = static_cast<std::int64_t>(r.shape_of(v).rank());
    if (permuted->permutation.empty()) return {};
    for (std::int64_t axis : permuted->permutation) s.permutation.push_back(normal_axis(axis, r.shape_of(v).rank()));
    if (s.permutation.back() != rank - 1) return {};
    v = r.input(v, 0);
  }
  s.lens = r.shape_of(v).lens;
  if (r.template get_if<op::reshape>(v)) {
    const value_id from = r.input(v, 0);
    if (!keeps_last(r.shape_of(from).lens, s.lens)) return {};
    v = from;
  }
  if (!r.is_kind(v, op_kind::pointwise)) return {};
  split_row<R> row(r, v, s);
  return row.serves() ? row.moved() : value_id{};
}

}  // namespace detail

/// Where pointwise ops read a normalized row split in two, its halves exchanged or not, as a rotary embedding after RMS
/// or layer normalization does: the row is computed at the split extents, from views of what it reads. Views move no
/// data, so that `fuse_reduce` then makes one kernel of the normalization and of what reads it. An exchanged row is
/// computed a second time, which costs less than to write it and read it back.
template <class Program> constexpr pass_note split_rows(Program& p) {
  pass_note note("split_rows");
  rewrite_unfused(p, [&](auto& r, std::uint32_t i) {
    if (!r.template get_if<op::reshape>({i, 0})) return;
    small_vector<std::uint32_t> views;  // before what they view: they are found by it
    for (std::uint32_t u : r.users(i))
      if (u != r.output_user && r.template get_if<op::reverse>({u, 0})) views.push_back(u);
    views.push_back(i);
    for (std::uint32_t v : views)
      if (const value_id made = detail::at_split_extents(r, {v, 0})) {
        r.replace({v, 0}, made);
        note.count("row");
      }
  });
  return note;
}

}  // namespace kiln

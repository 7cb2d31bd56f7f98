#pragma once
#include "kiln/pass/attention_pattern.hpp"

namespace kiln {

namespace detail {

/// Keys or values before their heads were repeated: [batch, kv, s, d] viewed as [batch, kv, group, s, d], reshaped to
/// [batch, kv * group, s, d]; an empty value where `v` is nothing like that.
template <class Rewriter> constexpr value_id ungrouped_heads(const Rewriter& r, value_id v) {
  const dims lens = r.shape_of(v).lens;
  if (lens.size() != 4 || !r.is_kind(v, op_kind::view)) return {};
  const value_id groups = r.input(v, 0);
  const dims& wide = r.shape_of(groups).lens;
  if (wide.size() != 5 || !(wide[0] == lens[0] && wide[3] == lens[2] && wide[4] == lens[3])) return {};
  if (!r.template get_if<op::reshape>(v) && !r.producer(v).op.map(layout::standard(wide))->is_standard()) return {};
  for (value_id from = groups; r.is_kind(from, op_kind::view);) {
    from = r.input(from, 0);
    const dims& narrow = r.shape_of(from).lens;
    if (!(narrow == dims{wide[0], wide[1], wide[3], wide[4]})) continue;
    const auto l = layout_over(r, groups, from);
    if (!l || !(l->offset == dimension(0))) return {};
    const dims steps = row_major(narrow);
    const dims expected{steps[0], steps[1], 0, steps[2], steps[3]};
    for (std::size_t d = 0; d < 5; ++d)
      if (!(wide[d] == dimension(1)) && !(l->strides[d] == expected[d])) return {};
    return from;
  }
  return {};
}

/// Builds `op::attention` from a matched pattern.
template <class Rewriter> class attention_builder {
 public:
  constexpr attention_builder(Rewriter& r, const attention_pattern<Rewriter>& found)
      : r_(r), found_(found), rank_(r.shape_of(found.scores).rank()) {}

  /// The value that replaces the pattern, or an empty one.
  constexpr value_id build() {
    double scale = found_.scale;
    value_id q = unscaled(r_.input(found_.scores, 0), scale), k = swapped(unscaled(r_.input(found_.scores, 1), scale)),
             v = renamed_like(r_.input(found_.weights, 1), r_.shape_of(found_.scores).lens.back());
    const value_id keys = ungrouped(k), values = ungrouped(v);
    if (keys && values && r_.shape_of(keys).lens[1] == r_.shape_of(values).lens[1]) k = keys, v = values;
    small_vector<value_id> inputs;
    inputs.push_back(of_rank_4(q));
    inputs.push_back(of_rank_4(k));
    inputs.push_back(of_rank_4(v));
    if (!found_.masks.empty()) {
      const value_id m = mask();
      if (!m) return {};
      inputs.push_back(m);
    }
    shapes in;
    for (value_id i : inputs) in.push_back(r_.shape_of(i));
    const op::attention attention{.scale = static_cast<float>(scale), .causal = false};
    if (!attention.compute_shape(in)) return {};
    value_id out = r_.add(attention, std::move(inputs), r_.producer(found_.weights).name.view());
    // a mask may have named the extents of the queries as well
    const dims lens = r_.shape_of(found_.weights).lens;
    return reshaped(repeated(out, raised(lens)), lens);
  }

 private:
  // The values before their length took the name that a mask gave to the scores'.
  constexpr value_id renamed_like(value_id v, dimension keys) const {
    const value_id from = renamed_from(r_, v);
    return r_.shape_of(from).lens[rank_ - 2] == keys ? from : v;
  }
  constexpr value_id reshaped(value_id v, const dims& lens) {
    return r_.shape_of(v).lens == lens ? v : r_.add(op::reshape{lens}, {v});
  }
  constexpr value_id repeated(value_id v, const dims& lens) {
    return r_.shape_of(v).lens == lens ? v : r_.add(op::multibroadcast{lens}, {v});
  }
  static constexpr dims raised(dims lens) {
    while (lens.size() < 4) lens.insert(0, 1);
    return lens;
  }
  constexpr value_id of_rank_4(value_id v) { return reshaped(v, raised(r_.shape_of(v).lens)); }

  // A constant factor of an operand joins the scale, where nothing else reads the product.
  constexpr value_id unscaled(value_id v, double& scale) const {
    const bool product = r_.template get_if<op::mul>(v) != nullptr;
    if ((!product && !r_.template get_if<op::div>(v)) || !r_.single_use(v)) return v;
    for (std::size_t k = 0; k <= (product ? 1 : 0); ++k) {
      const auto constant = repeated_constant(r_, r_.input(v, 1 - k));
      const auto by = constant ? uniform_value(*constant) : std::nullopt;
      if (!by) continue;
      scale = product ? scale * *by : scale / *by;
      return r_.input(v, k);
    }
    return v;
  }

  // The value with its last two dims exchanged: a transposition it ends in is taken back.
  constexpr value_id swapped(value_id v) {
    ints order;
    value_id from = v;
    if (const auto* t = r_.template get_if<op::transpose>(v)) {
      from = r_.input(v, 0);
      for (std::size_t d = 0; d < rank_; ++d)
        order.push_back(t->permutation.empty() ? static_cast<std::int64_t>(rank_ - 1 - d)
                                               : normal_axis(t->permutation[d], rank_));
    } else {
      for (std::size_t d = 0; d < rank_; ++d) order.push_back(static_cast<std::int64_t>(d));
    }
    std::swap(order[rank_ - 1], order[rank_ - 2]);
    bool identity = true;
    for (std::size_t d = 0; d < rank_; ++d) identity = identity && order[d] == static_cast<std::int64_t>(d);
    return identity ? from : r_.add(op::transpose{order}, {from});
  }

  // The keys or values before every head was repeated for a group of query heads, or an empty value:
  constexpr value_id ungrouped(value_id v) const { return ungrouped_heads(r_, v); }

  // A mask before it was repeated over the scores' dims, with as many dims as they have.
  constexpr value_id narrow(value_id v) {
    while (r_.template get_if<op::multibroadcast>(v)) v = r_.input(v, 0);
    dims lens = r_.shape_of(v).lens;
    while (lens.size() < rank_) lens.insert(0, 1);
    return reshaped(v, lens);
  }
  // Terms are joined over the dims that the masks themselves have.
  constexpr value_id mask() {
    value_id sum;
    for (const auto& term : found_.masks) {
      value_id m = narrow(term.mask);
      dims lens = r_.shape_of(m).lens;
      if (sum) {
        const auto both = broadcast(lens, r_.shape_of(sum).lens);
        if (!both) return {};
        lens = *both;
      }
      m = repeated(m, lens);
      if (term.fill) {
        const literal fill = *repeated_constant(r_, term.fill);
        const value_id hidden = repeated(r_.add_literal(fill), lens);
        const value_id seen = repeated(sum ? sum : r_.add_literal(literal::scalar(fill.get_shape().type, 0.0)), lens);
        small_vector<value_id> inputs;
        inputs.push_back(m);
        inputs.push_back(term.hidden_where ? hidden : seen);
        inputs.push_back(term.hidden_where ? seen : hidden);
        sum = r_.add(op::where{}, std::move(inputs));
      } else {
        sum = sum ? r_.add(op::add{}, {repeated(sum, lens), m}) : m;
      }
    }
    // an extent that only a run can tell equal to the scores' is named as theirs
    const dims& scores = r_.shape_of(found_.scores).lens;
    dims lens = r_.shape_of(sum).lens;
    // where other than the mask named the keys, nothing here would compare them with that name
    const dimension keys = r_.shape_of(r_.input(found_.weights, 0)).lens[rank_ - 1];
    if (!(keys == scores[rank_ - 1] || keys == lens[rank_ - 1])) return {};
    for (std::size_t d = 0; d < rank_; ++d)
      if (!(lens[d] == dimension(1))) lens[d] = scores[d];
    return of_rank_4(repeated(sum, lens));
  }

  Rewriter& r_;
  const attention_pattern<Rewriter>& found_;
  std::size_t rank_;
};

}  // namespace detail

/// Replaces softmax(scale * q k^T + mask) v, as exporters decompose it, by `attention` (Vaswani et al. 2017): one
/// kernel that keeps no scores. Keys and values that are repeated for groups of query heads (Ainslie et al. 2023) are
/// read once, masks keep the dims they had before they were repeated, and a condition becomes a mask of zeros and the
/// constant that hid the scores.
template <class Program> constexpr pass_note fuse_attention(Program& p) {
  pass_note note("fuse_attention");
  rewrite_unfused(p, [&](auto& r, std::uint32_t i) {
    using rewriter_type = std::remove_cvref_t<decltype(r)>;
    detail::attention_pattern<rewriter_type> found(r);
    if (!found.match({i, 0})) return;
    const value_id by = detail::attention_builder<rewriter_type>(r, found).build();
    if (!by) return note.remark(text("softmax between two matrix products does not have attention's shapes"));
    if (!found.masks.empty())
      note.remark(text("attention: a row whose scores are all -inf gives zeros, where softmax gives NaN"));
    r.replace({i, 0}, by);
    note.count("attention");
  });
  return note;
}

}  // namespace kiln

#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/pass/constants.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/patterns.hpp"

namespace kiln {

namespace detail {

/// Brings constant factors before or after a contraction into its constant operand. Which dim of the
/// weights a factor belongs to is read from the contraction's own index maps, so that any contraction takes part.
template <class R> class factor_folder {
 public:
  constexpr factor_folder(R& r, value_id v) : r_(r), v_(v) {}

  /// The contraction with weights * factor (or weights / factor), or nothing. `out`: the factor comes after it.
  template <class Op> constexpr value_id after(value_id factor) {
    return rebuilt<Op>(factor, contraction_(), &contraction::out, {});
  }
  /// The same for a factor before operand `side`; `data` replaces that operand.
  template <class Op> constexpr value_id before(std::size_t side, value_id factor, value_id data) {
    return rebuilt<Op>(factor, contraction_(), side == 0 ? &contraction::lhs : &contraction::rhs, data, side);
  }

 private:
  constexpr result<contraction> contraction_() const {
    shapes in;
    for (value_id v : r_.producer(v_).inputs) in.push_back(r_.shape_of(v));
    return r_.producer(v_).op.maps(in);
  }
  // The constant operand, also through a broadcast over leading dims.
  constexpr value_id weights_of(std::size_t side) const {
    value_id w = r_.input(v_, side);
    if (r_.template get_if<op::multibroadcast>(w)) w = r_.input(w, 0);
    const constant_view c = viewed_constant(r_, w);
    if (!c || c.from->has_symbols()) return {};
    for (std::size_t d = 0; d < c.at.lens.size(); ++d)
      if (!varies(c.at, d) && !(c.at.lens[d] == dimension(1))) return {};
    return w;
  }
  static constexpr bool same_index(const affine& a, const affine& b) {
    return a.constant == 0 && b.constant == 0 && a.coefficient == b.coefficient;
  }

  template <class Op>
  constexpr value_id rebuilt(value_id factor, const result<contraction>& c, access contraction::*at, value_id data,
                             std::size_t data_side = 2) {
    if (!c) return {};
    for (std::size_t side = 2; side-- > 0;) {
      if (side == data_side) continue;
      const value_id w = weights_of(side);
      if (!w) continue;
      const value_id scaled = scaled_weights<Op>(w, factor, side == 0 ? c->lhs : c->rhs, (*c).*at);
      if (!scaled) continue;
      const value_id old = r_.input(v_, side);
      small_vector<value_id> in = r_.producer(v_).inputs;
      in[side] = w == old ? scaled : r_.add(op::multibroadcast{r_.shape_of(old).lens}, {scaled});
      if (data) in[data_side] = data;
      const auto contracting_op = r_.producer(v_).op;
      return r_.add(contracting_op, std::move(in));
    }
    return {};
  }

  // Each dim along which the factor varies must be a dim of the weights, at the same index of the iteration.
  template <class Op>
  constexpr value_id scaled_weights(value_id w, value_id factor, const access& weights, const access& value) {
    const constant_view f = viewed_constant(r_, factor);
    if (!f || f.from->has_symbols()) return {};
    const dims lens = r_.shape_of(w).lens;
    const std::size_t missing = weights.size() - lens.size();  // dims that a broadcast adds in front
    layout at{dims(lens.size(), dimension(1)), dims(lens.size(), dimension(0)), f.at.offset};
    for (std::size_t d = 0; d < value.size(); ++d) {
      if (!varies(f.at, d)) continue;
      std::size_t k = missing;
      while (k < weights.size() && !same_index(weights[k], value[d])) ++k;
      if (k == weights.size() || !(lens[k - missing] == f.at.lens[d])) return {};
      at.lens[k - missing] = f.at.lens[d];
      at.strides[k - missing] = f.at.strides[d];
    }
    const literal narrow = laid_out(*f.from, at);
    const shape scaled_shape = r_.shape_of(w);
    value_id c = r_.add_literal(narrow);
    if (!(at.lens == lens)) c = r_.add(op::multibroadcast{lens}, {c});
    std::optional<bool> finite;
    const value_id scaled = fold_pointwise(r_, Op{}, {w, c}, scaled_shape.elements().value(), &finite);
    if (!scaled || !r_.constant(scaled)) return {};
    return (finite ? *finite : all_finite(*r_.constant(scaled))) ? scaled : value_id{};
  }
  static constexpr bool all_finite(const literal& l) {
    if (!std::is_constant_evaluated() && l.get_shape().type == dtype::f32 && !l.has_symbols()) return finite_floats(l);
    bool finite = true;
    visit_elements(l, l.elements(), [&](const auto& x) {
      if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(x)>>) finite = finite && x - x == 0;
    });
    return finite;
  }

  R& r_;
  value_id v_;
};

// f(contraction, factor) or f(contraction + addend, factor), f being mul or div.
template <class Op, class R> constexpr value_id fold_factor_after(R& r, value_id v) {
  if (!is_float(r.shape_of(v).type)) return {};
  for (std::size_t side = 0; side < 2; ++side) {
    if (side == 1 && std::is_same_v<Op, op::div>) return {};
    const value_id x = r.input(v, side), factor = r.input(v, 1 - side);
    if (!r.single_use(x) || !viewed_constant(r, factor)) continue;
    if (r.is_kind(x, op_kind::contraction)) {
      if (const value_id out = factor_folder<R>(r, x).template after<Op>(factor)) return out;
    } else if (r.template get_if<op::add>(x)) {
      for (std::size_t k = 0; k < 2; ++k) {
        const value_id y = r.input(x, k), addend = r.input(x, 1 - k);
        if (!r.is_kind(y, op_kind::contraction) || !r.single_use(y)) continue;
        const constant_view a = viewed_constant(r, addend), f = viewed_constant(r, factor);
        if (!a || a.from->has_symbols()) continue;
        const std::int64_t most = a.from->elements() > f.from->elements() ? a.from->elements() : f.from->elements();
        const value_id moved = fold_pointwise(r, Op{}, {addend, factor}, most);
        if (!moved) continue;
        if (const value_id out = factor_folder<R>(r, y).template after<Op>(factor))
          return r.add(op::add{}, {out, moved});
      }
    }
  }
  return {};
}

// contraction(x * factor, w): a factor that varies along a summed dim of x belongs to that dim of the weights. Padding
// does no harm, for a product keeps its zeros.
template <class R> constexpr value_id fold_factor_before(R& r, value_id v) {
  if (!is_float(r.shape_of(v).type)) return {};
  for (std::size_t side = 0; side < 2; ++side) {
    const value_id x = r.input(v, side);
    if (!r.template get_if<op::mul>(x) || !r.single_use(x)) continue;
    for (std::size_t k = 0; k < 2; ++k) {
      const value_id factor = r.input(x, k), data = r.input(x, 1 - k);
      if (!viewed_constant(r, factor) || viewed_constant(r, data)) continue;
      if (const value_id out = factor_folder<R>(r, v).template before<op::mul>(side, factor, data)) return out;
    }
  }
  return {};
}

}  // namespace detail

/// Folds constant factors around a dot or convolution into its constant weights: what is left of a batch normalization
/// after a convolution is the addition of a bias (Ioffe and Szegedy, 2015). Weights that are parameters stay as they
/// are, and a remark says so.
template <class Program> constexpr pass_note fold_batch_norm(Program& p) {
  pass_note note("fold_batch_norm");
  for_each_module(p, [&](auto& m) {
    note.count(apply_rewrites(
        m,
        rewrite_each<op::mul>("factor_after",
                              [](auto& r, value_id v) { return detail::fold_factor_after<op::mul>(r, v); }),
        rewrite_each<op::div>("divisor_after",
                              [](auto& r, value_id v) { return detail::fold_factor_after<op::div>(r, v); }),
        rewrite_kind<op_kind::contraction>("factor_before",
                                           [](auto& r, value_id v) { return detail::fold_factor_before(r, v); })));
    std::uint32_t open = 0;
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      if (m[i].kind != instruction_kind::op || !m[i].op.template is<op::mul>()) continue;
      for (value_id x : m[i].inputs) {
        const auto& c = m.producer(x);
        if (c.kind != instruction_kind::op || c.op.kind() != op_kind::contraction) continue;
        for (value_id w : c.inputs) open += m.producer(w).is_weight;
      }
    }
    if (!open) return;
    text t;
    t.append(static_cast<std::int64_t>(open));
    note.remark(std::move(
        t.append(std::string_view(" products after a contraction stay: its weights are bound after these passes"))));
  });
  return note;
}

}  // namespace kiln

#pragma once
#include "kiln/graph/fold.hpp"
#include "kiln/pass/constants.hpp"
#include "kiln/pass/fusion_group.hpp"

namespace kiln {

namespace detail {

// Of shape `s`, as `side_by_side` joins them in a constant expression.
literal joined_columns(const small_vector<literal>& parts, const shape& s);

/// Constants side by side along their last axis; equal leading extents.
constexpr literal side_by_side(const small_vector<literal>& parts) {
  shape s = parts[0].get_shape();
  const std::size_t last = s.rank() - 1;
  for (std::size_t k = 1; k < parts.size(); ++k) s.lens[last] += parts[k].get_shape().lens[last];
  if (std::is_constant_evaluated()) {
    small_vector<const literal*> pointers;
    for (const literal& l : parts) pointers.push_back(&l);
    evaluation::operand out{s, nullptr, nullptr};
    small_vector<evaluation::operand> in;
    for (const literal& l : parts) in.push_back({l.get_shape(), &l, nullptr});
    evaluation e(in, std::span<const evaluation::operand>(&out, 1));
    kiln::evaluate(op::concat{static_cast<std::int64_t>(last)}, e);
    return e.literals()[0];
  }
  return joined_columns(parts, s);
}

/// Products of one left operand with constant matrices, of which the results are only viewed.
template <class Rewriter> class product_merger {
 public:
  constexpr explicit product_merger(Rewriter& r) : r_(r) {}

  /// Joins the products that read instruction i; returns how many became one.
  constexpr std::uint32_t join_readers(std::uint32_t i) {
    small_vector<branch> plain, biased;
    for (std::uint32_t u : r_.users(i)) {
      branch b;
      if (u == Rewriter::output_user || !find(u, i, b)) continue;
      (b.bias ? biased : plain).push_back(b);
    }
    return join(plain) + join(biased);
  }

 private:
  static constexpr std::int64_t most_bytes = std::int64_t{64} << 20;  // beyond, one product fills the machine alone

  struct branch {
    value_id product, weights, bias, result;
  };

  // The constant that a value is or views, or is widened of through views: see constants_stay_stored.hpp.
  constexpr constant_view stored(value_id v) const {
    if (const constant_view c = viewed_constant(r_, v)) return c;
    inline_vector<value_id, 8> views;
    for (; r_.is_kind(v, op_kind::view); v = r_.input(v, 0)) {
      if (views.size() == views.capacity()) return {};
      views.push_back(v);
    }
    if (!r_.template get_if<op::convert>(v)) return {};
    constant_view c = viewed_constant(r_, r_.input(v, 0));
    for (std::size_t k = views.size(); c && k-- > 0;) {
      const auto next = r_.producer(views[k]).op.map(c.at);
      if (!next) return {};
      c.at = *next;
    }
    return c;
  }
  // The constant of this rank (and leading extents of 1) that a value is or repeats over leading dims.
  constexpr value_id repeated(value_id v, std::size_t rank) const {
    if (r_.template get_if<op::multibroadcast>(v)) v = r_.input(v, 0);
    const constant_view c = stored(v);
    if (!c || c.from->has_symbols() || c.at.lens.size() < rank) return {};
    // what a run decides is written by no one here
    if (!is_constant(c.at.lens) || !is_constant(c.at.strides) || !c.at.offset.is_constant()) return {};
    for (std::size_t d = 0; d + rank < c.at.lens.size(); ++d)
      if (!(c.at.lens[d] == dimension(1))) return {};
    return v;
  }
  // Whether a matrix lies column by column.
  static constexpr bool is_turned(const layout& at) {
    const std::size_t rank = at.lens.size();
    return rank > 1 && at.strides[rank - 2] == dimension(1) && !(at.strides[rank - 1] == dimension(1));
  }
  constexpr bool alike(value_id a, value_id b) const {
    const constant_view x = stored(a), y = stored(b);
    return r_.shape_of(a).type == r_.shape_of(b).type && x.from->get_shape().type == y.from->get_shape().type &&
           is_turned(x.at) == is_turned(y.at);
  }
  constexpr bool find(std::uint32_t u, std::uint32_t source, branch& b) const {
    b.product = {u, 0};
    if (!r_.template get_if<op::dot>(b.product) || r_.input(b.product, 0).instruction != source) return false;
    if (r_.input(b.product, 1).instruction == source || r_.users(u).empty()) return false;
    b.weights = repeated(r_.input(b.product, 1), 2);
    if (!b.weights) return false;
    b.result = b.product;
    if (r_.single_use(b.product) && r_.users(u).front() != Rewriter::output_user) {
      const value_id sum{r_.users(u).front(), 0};
      if (r_.template get_if<op::add>(sum)) {
        const value_id other = r_.input(sum, r_.input(sum, 0) == b.product ? 1 : 0);
        b.bias = repeated(other, 1);
        if (!b.bias || !(r_.shape_of(b.bias).lens.back() == r_.shape_of(b.product).lens.back())) return false;
        b.result = sum;
      }
    }
    return viewed(b.result);
  }
  // Whether only views read the value, and each still needs no copy when it is a part of wider rows.
  constexpr bool viewed(value_id v) const {
    const dims& lens = r_.shape_of(v).lens;
    dims wide = lens;
    wide.back() = wide.back() * 2;
    const layout part{lens, row_major(wide), 0};
    for (std::uint32_t u : r_.users(v.instruction)) {
      if (u == Rewriter::output_user || r_[u].op.kind() != op_kind::view) return false;
      if (!r_[u].op.map(part)) return false;
    }
    return !r_.users(v.instruction).empty();
  }

  constexpr std::uint32_t join(const small_vector<branch>& all) {
    small_vector<branch> same;
    std::int64_t bytes = 0;
    for (const branch& b : all) {
      const shape& s = r_.shape_of(b.weights);
      if (!same.empty() && !alike(b.weights, same[0].weights)) continue;
      if (bytes + s.bytes().value() > most_bytes) continue;
      bytes += s.bytes().value();
      same.push_back(b);
    }
    if (same.size() < 2) return 0;
    dims lens = r_.shape_of(same[0].product).lens;
    const value_id weights = joined(same, &branch::weights, 2);
    dims weight_lens = r_.shape_of(r_.input(same[0].product, 1)).lens;
    weight_lens.back() = lens.back() = r_.shape_of(weights).lens.back();
    const text name = r_.producer(same[0].product).name;
    value_id y = r_.add(op::dot{}, {r_.input(same[0].product, 0), broadcast_to(weights, weight_lens)}, name.view());
    if (same[0].bias) y = r_.add(op::add{}, {y, broadcast_to(joined(same, &branch::bias, 1), lens)}, name.view());
    std::int64_t at = 0;
    for (const branch& b : same) {
      const std::int64_t axis = static_cast<std::int64_t>(lens.size()) - 1;
      const std::int64_t n = r_.shape_of(b.result).lens.back().value();
      r_.replace(b.result, r_.add(op::slice{.axes = {axis}, .starts = {at}, .ends = {at + n}, .steps = {1}}, {y}));
      at += n;
    }
    return static_cast<std::uint32_t>(same.size());
  }
  constexpr value_id joined(const small_vector<branch>& branches, value_id branch::*part, std::size_t rank) {
    small_vector<literal> parts;
    dimension height = 1;
    const bool turned = is_turned(stored(branches[0].*part).at);
    for (const branch& b : branches) {
      constant_view c = stored(b.*part);
      while (c.at.lens.size() > rank) c.at.lens.erase(0), c.at.strides.erase(0);
      if (turned) {  // its columns are rows, one after the other
        std::swap(c.at.lens[0], c.at.lens[1]);
        std::swap(c.at.strides[0], c.at.strides[1]);
        height = c.at.lens[1];
      }
      parts.push_back(laid_out(*c.from, c.at));
      if (turned) parts.back() = parts.back().reshaped({parts.back().get_shape().elements()});
    }
    literal all = side_by_side(parts);
    if (turned) all = all.reshaped({all.get_shape().elements() / height, height});
    const dtype type = r_.shape_of(branches[0].*part).type;
    value_id made = r_.add_literal(std::move(all));
    if (r_.shape_of(made).type != type) made = r_.add(op::convert{type}, {made});
    return turned ? r_.add(op::transpose{{1, 0}}, {made}) : made;
  }
  constexpr value_id broadcast_to(value_id v, const dims& lens) {
    return r_.shape_of(v).lens == lens ? v : r_.add(op::multibroadcast{lens}, {v});
  }

  Rewriter& r_;
};

}  // namespace detail

/// Joins products of one value with several constant matrices into a product with all of them side by side: the query,
/// key and value projections of attention read their input once. Only where views alone read the results (an epilogue
/// would be worth more), which then are parts of wider rows; constant biases join likewise.
template <class Program> constexpr pass_note merge_products(Program& p) {
  pass_note note("merge_products");
  rewrite_unfused(p, [&](auto& r, std::uint32_t i) {
    if (r.users(i).size() > 1)
      note.count("product", detail::product_merger<std::remove_cvref_t<decltype(r)>>(r).join_readers(i));
  });
  return note;
}

}  // namespace kiln

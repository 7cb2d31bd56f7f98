#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/linear/dot.hpp"
#include "kiln/pass/constant_matrix.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

/// The left operand of some products, and the greatest magnitude that each channel, an index of its last dim, has.
struct smoothed_value {
  value_id value;
  small_vector<float> magnitude;
};

/// How products are smoothed.
struct smoothing_plan {
  small_vector<smoothed_value> values{};
  double alpha = .5;  ///< how much of a channel's range moves to the weights: 0 to 1
  bool fold = true;   ///< divide what makes a value, where that is possible, and not the value
};

/// The dots of the main module whose left operand is an f32 value that is no constant and whose right operand is a
/// constant matrix, the same for the whole batch.
template <class Module> constexpr small_vector<value_id> products_to_smooth(Module& m) {
  small_vector<value_id> out;
  const rewriter<Module> r(m);
  for (std::uint32_t i = 0; i < r.size(); ++i) {
    const value_id v{i, 0};
    if (!r.template get_if<op::dot>(v) || r.shape_of(v).type != dtype::f32) continue;
    if (viewed_constant(r, r.input(v, 0))) continue;
    const constant_view w = viewed_constant(r, r.input(v, 1));
    if (w && !w.from->has_symbols() && detail::without_repeats(w.at).lens.size() == 2) out.push_back(v);
  }
  return out;
}

namespace detail {

template <class Module> class product_smoother {
 public:
  constexpr product_smoother(Module& m, const smoothing_plan& plan, pass_note& note)
      : r_(m), plan_(plan), note_(note) {}

  constexpr void run() {
    const small_vector<value_id> products = products_to_smooth(r_.module());
    for (const smoothed_value& v : plan_.values) smooth(v, products);
  }

 private:
  constexpr void smooth(const smoothed_value& v, const small_vector<value_id>& products) {
    small_vector<value_id> readers;
    for (const value_id p : products)
      if (r_.input(p, 0) == v.value) readers.push_back(p);
    if (readers.empty()) return;
    // what each channel is multiplied with, the inverse of what its weights are
    small_vector<float> greatest(v.magnitude.size(), 0);
    small_vector<literal> weights;
    for (const value_id p : readers) {
      const constant_view c = viewed_constant(r_, r_.input(p, 1));
      weights.push_back(laid_out(*c.from, without_repeats(c.at)));
      const literal& w = weights[weights.size() - 1];
      if (!(w.get_shape().lens[0] == dimension(greatest.size()))) return;
      std::size_t k = 0;
      const std::size_t columns = static_cast<std::size_t>(w.get_shape().lens[1].value());
      for (const float x : w.template to<float>()) {
        const float a = x < 0 ? -x : x;
        if (float& most = greatest[k++ / columns]; a > most) most = a;
      }
    }
    small_vector<float> by;
    for (std::size_t k = 0; k < greatest.size(); ++k) by.push_back(factor_of(v.magnitude[k], greatest[k]));
    for (std::size_t p = 0; p < readers.size(); ++p) divide_rows(readers[p], weights[p], by);
    const value_id factors = r_.add_literal(literal::of<float>(shape{dtype::f32, {dimension(by.size())}}, by));
    if (plan_.fold && only_read_by(v.value, readers) && multiply_maker(v.value, factors)) {
      note_.count("folded");
    } else {
      text name = r_.producer(v.value).name;
      if (!name.empty()) name.append(std::string_view("_smoothed"));
      const value_id made = r_.add(op::mul{}, {v.value, spread(factors, v.value)}, name.view());
      for (const value_id p : readers) r_.module()[p.instruction].inputs[0] = made;
      note_.count("values");
    }
    for (const value_id p : readers) note_.count(r_.producer(p).op.name());
  }

  constexpr float factor_of(float x, float w) const {
    if (!(x > 0) || !(w > 0)) return 1;
    const auto alpha = static_cast<float>(plan_.alpha);
    const float factor = kiln::pow(w, 1 - alpha) / kiln::pow(x, alpha);
    return factor > 1e-30f && factor < 1e30f ? factor : 1;
  }

  constexpr void divide_rows(value_id product, const literal& w, const small_vector<float>& by) {
    const std::size_t columns = static_cast<std::size_t>(w.get_shape().lens[1].value());
    small_vector<float> values = w.template to<float>();
    for (std::size_t k = 0; k < values.size(); ++k) values[k] /= by[k / columns];
    const value_id from = r_.input(product, 1);
    const value_id made = r_.add_literal(literal::of<float>(w.get_shape(), values), {origin_of(r_, from)});
    const value_id whole = repeated(r_, made, r_.shape_of(from).lens);
    r_.module()[product.instruction].inputs[1] = whole;
  }
  constexpr value_id spread(value_id factors, value_id like) {
    const dims lens = r_.shape_of(like).lens;
    return r_.add(op::broadcast{static_cast<std::int64_t>(lens.size()) - 1, lens}, {factors});
  }
  constexpr bool only_read_by(value_id v, const small_vector<value_id>& readers) const {
    for (const std::uint32_t u : r_.users(v.instruction)) {
      bool known = false;
      for (const value_id p : readers) known = known || p.instruction == u;
      if (!known) return false;
    }
    return true;
  }
  // Multiplies what a value is made with: the weights of a product, and the scale and bias of a norm.
  constexpr bool multiply_maker(value_id v, value_id factors) {
    const auto constant = [&](std::size_t k) { return static_cast<bool>(viewed_constant(r_, r_.input(v, k))); };
    const auto multiply = [&](std::size_t k) {
      const value_id x = r_.input(v, k), by = spread(factors, x);
      const value_id made = r_.add(op::mul{}, {x, by});
      r_.module()[v.instruction].inputs[k] = made;
    };
    if (r_.producer(v).kind != instruction_kind::op || r_.shape_of(v).type != dtype::f32) return false;
    if (r_.template get_if<op::dot>(v)) {
      if (!constant(1)) return false;
      multiply(1);
      return true;
    }
    if (r_.template get_if<op::mul>(v)) {
      if (!constant(0) && !constant(1)) return false;
      multiply(constant(1) ? 1 : 0);
      return true;
    }
    if (!r_.template get_if<op::add>(v) || (!constant(0) && !constant(1))) return false;
    const std::size_t bias = constant(1) ? 1 : 0;
    const value_id from = r_.input(v, 1 - bias);
    if (!r_.single_use(from) || !multiply_maker(from, factors)) return false;
    multiply(bias);
    return true;
  }

  rewriter<Module> r_;
  const smoothing_plan& plan_;
  pass_note& note_;
};

}  // namespace detail

/// Moves ranges from values to the weights that they are multiplied with, channel by channel, so that integers show
/// both well: SmoothQuant (Xiao et al. 2022). A channel is divided by x^alpha / w^(1 - alpha) of its greatest
/// magnitudes, and its weights are multiplied by it: the program computes the same, but for rounding.
template <class Program> constexpr pass_note smooth_products(Program& p, const smoothing_plan& plan) {
  pass_note note("smooth_products");
  detail::product_smoother(p.main(), plan, note).run();
  return note;
}

}  // namespace kiln

#pragma once
#include "kiln/pass/constants.hpp"

/// Recognizes the ways exporters spell the Gaussian error linear unit (Hendrycks and Gimpel, 2016).
namespace kiln::detail {

// c[0] + c[1] x + c[2] x^2 + c[3] x^3, or not a polynomial of x.
struct cubic {
  double c[4]{};
  bool known = false;
};

constexpr cubic product(const cubic& a, const cubic& b) {
  cubic out;
  out.known = a.known && b.known;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const double term = a.c[i] * b.c[j];
      if (i + j < 4)
        out.c[i + j] += term;
      else
        out.known = out.known && term == 0;
    }
  return out;
}

// The value as a polynomial of x: sums, products, whole powers and quotients by constants of x and constants.
template <class R> constexpr cubic polynomial(const R& r, value_id v, value_id x, int depth = 8) {
  cubic out;
  if (v == x) {
    out.c[1] = 1;
    out.known = true;
    return out;
  }
  if (const auto c = uniform_value(r, v)) {
    out.c[0] = *c;
    out.known = true;
    return out;
  }
  if (depth == 0 || !r.is_kind(v, op_kind::pointwise) || r.producer(v).inputs.size() != 2) return out;
  const value_id l = r.input(v, 0), b = r.input(v, 1);
  if (r.template get_if<op::mul>(v)) {
    const cubic left = polynomial(r, l, x, depth - 1);
    return left.known ? product(left, polynomial(r, b, x, depth - 1)) : left;
  }
  if (r.template get_if<op::add>(v)) {
    out = polynomial(r, l, x, depth - 1);
    if (!out.known) return out;
    const cubic right = polynomial(r, b, x, depth - 1);
    for (int i = 0; i < 4; ++i) out.c[i] += right.c[i];
    out.known = right.known;
    return out;
  }
  if (r.template get_if<op::div>(v)) {
    const auto c = uniform_value(r, b);
    if (!c || *c == 0) return out;
    out = polynomial(r, l, x, depth - 1);
    for (double& k : out.c) k /= *c;
    return out;
  }
  if (r.template get_if<op::pow>(v)) {
    const auto c = uniform_value(r, b);
    if (!c || (*c != 2 && *c != 3)) return out;
    const cubic base = polynomial(r, l, x, depth - 1);
    out = product(base, base);
    return *c == 2 ? out : product(out, base);
  }
  return out;
}

// Coefficients as written in the dtype: a half has three digits.
constexpr bool is_cubic(const cubic& p, double c1, double c3, dtype t) {
  const double tolerance = t == dtype::f16 ? 2e-3 : t == dtype::bf16 ? 8e-3 : 2e-6;
  const auto near = [&](double a, double b) {
    const double gap = a < b ? b - a : a - b;
    return gap <= tolerance * (b == 0 ? 0 : b);
  };
  return p.known && p.c[0] == 0 && p.c[2] == 0 && near(p.c[1], c1) && near(p.c[3], c3);
}

// Which gelu the factor `1 + f(u(x))` belongs to: 0 for none, 1 for erf, 2 for tanh.
template <class R> constexpr int gelu_factor(const R& r, value_id v, value_id x) {
  if (!r.template get_if<op::add>(v)) return 0;
  for (std::size_t side = 0; side < 2; ++side) {
    const auto one = uniform_value(r, r.input(v, side));
    if (!one || *one != 1) continue;
    const value_id f = r.input(v, 1 - side);
    const dtype t = r.shape_of(f).type;
    constexpr double root_half = 0.7071067811865476, k = 0.7978845608028654;
    if (r.template get_if<op::erf>(f) && is_cubic(polynomial(r, r.input(f, 0), x), root_half, 0, t)) return 1;
    if (r.template get_if<op::tanh>(f) && is_cubic(polynomial(r, r.input(f, 0), x), k, k * 0.044715, t)) return 2;
  }
  return 0;
}

template <class R> constexpr bool is_half(const R& r, value_id v) {
  const auto c = uniform_value(r, v);
  return c && *c == 0.5;
}

// 0.5, x and the factor multiplied in any order and association.
template <class R> constexpr value_id spelled_gelu(R& r, value_id v) {
  if (!is_float(r.shape_of(v).type)) return {};
  for (std::size_t side = 0; side < 2; ++side) {
    const value_id inner = r.input(v, side), other = r.input(v, 1 - side);
    if (!r.template get_if<op::mul>(inner) || !r.single_use(inner)) continue;
    const value_id three[3] = {other, r.input(inner, 0), r.input(inner, 1)};
    for (int half = 0; half < 3; ++half) {
      if (!is_half(r, three[half])) continue;
      for (int at = 1; at < 3; ++at) {
        const value_id x = three[(half + at) % 3];
        if (const int kind = gelu_factor(r, three[(half + 3 - at) % 3], x)) return r.add(op::gelu{kind == 2}, {x});
      }
    }
  }
  return {};
}

}  // namespace kiln::detail

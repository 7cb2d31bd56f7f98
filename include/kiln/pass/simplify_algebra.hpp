#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/pass/gelu_spelling.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/patterns.hpp"

namespace kiln {

namespace detail {

template <class R> constexpr bool is_uniform(const R& r, value_id v, double x) {
  const auto c = uniform_value(r, v);
  return c && *c == x;
}
// The operand beside a constant of that value, in either order.
template <class R> constexpr value_id beside(const R& r, value_id v, double x) {
  if (is_uniform(r, r.input(v, 1), x)) return r.input(v, 0);
  return is_uniform(r, r.input(v, 0), x) ? r.input(v, 1) : value_id{};
}
template <class R> constexpr bool is_foldable(const R& r, value_id v) {
  const constant_view c = viewed_constant(r, v);
  return c && !c.from->has_symbols();
}

// 2^k whose reciprocal is exact in every float dtype it fits.
constexpr bool power_of_two(double x) {
  const double a = x < 0 ? -x : x;
  return a >= 0x1p-14 && a <= 0x1p14 && (std::bit_cast<std::uint64_t>(a) & ((std::uint64_t{1} << 52) - 1)) == 0;
}

// Binary digits that a number's magnitude has in a type.
constexpr int digits_of(dtype t) {
  const int bits = bits_of(t);
  return t == dtype::f64        ? 53
         : t == dtype::f32      ? 24
         : t == dtype::f16      ? 11
         : t == dtype::bf16     ? 8
         : is_signed_integer(t) ? bits - 1
                                : bits;
}

// Whether every value of `from` is one of `to`: converting there and on loses nothing.
constexpr bool holds_all(dtype to, dtype from) {
  if (to == from) return true;
  if (to == dtype::boolean || to == dtype::f8e8m0) return false;
  if (from == dtype::boolean) return true;
  if (is_narrow(from) && is_float(from)) return to == dtype::f32 || to == dtype::f64;
  if (is_narrow(to) && is_float(to)) return false;
  if (is_float(from)) return is_float(to) && size_of(to) > size_of(from);
  if (is_signed_integer(from) && is_unsigned_integer(to)) return false;
  return digits_of(to) >= digits_of(from);
}

// Calls `f` with the magnitude of each element of a constant.
template <class R, class F> constexpr void for_each_magnitude(const R& r, value_id v, F&& f) {
  const constant_view c = viewed_constant(r, v);
  visit_elements(*c.from, c.from->elements(), [&](const auto& x) {
    if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(x)>, dimension>)
      f(static_cast<double>(x) < 0 ? -static_cast<double>(x) : static_cast<double>(x));
  });
}

// Merging constants changes rounding only as long as the merged one is an ordinary number.
template <class R> constexpr bool is_tame(const R& r, value_id v, double least, double most, bool zeros = false) {
  bool tame = true;
  for_each_magnitude(r, v, [&](double a) { tame = tame && (a == 0 ? zeros || least == 0 : a >= least) && a <= most; });
  return tame;
}
template <class R> constexpr double greatest_magnitude(const R& r, value_id v) {
  double greatest = 0;
  for_each_magnitude(r, v, [&](double a) { greatest = a > greatest ? a : greatest; });
  return greatest;
}

// op(op(x, c1), c2) as op(x, c), for an associative op.
template <class Op, class R> constexpr value_id merge_constants(R& r, value_id v, pass_note& note) {
  for (std::size_t side = 0; side < 2; ++side) {
    const value_id c2 = r.input(v, side), inner = r.input(v, 1 - side);
    if (!r.template get_if<Op>(inner) || !is_foldable(r, c2)) continue;
    for (std::size_t k = 0; k < 2; ++k) {
      const value_id c1 = r.input(inner, k), x = r.input(inner, 1 - k);
      if (!is_foldable(r, c1) || is_foldable(r, x)) continue;
      const bool product = std::is_same_v<Op, op::mul>;
      const bool floats = is_float(r.shape_of(v).type);
      // a large addend, added and taken away again, rounds on purpose
      if (floats && !(product ? is_tame(r, c1, 0x1p-40, 0x1p40) && is_tame(r, c2, 0x1p-40, 0x1p40)
                              : is_tame(r, c1, 0, 0x1p16) && is_tame(r, c2, 0, 0x1p16)))
        return {};
      const auto elements = [&](value_id c) { return viewed_constant(r, c).from->elements(); };
      const std::int64_t most = elements(c1) > elements(c2) ? elements(c1) : elements(c2);
      const value_id c = fold_pointwise(r, Op{}, {c1, c2}, most);
      if (!c || (floats && product && !is_tame(r, c, 0x1p-14, 0x1p15))) return {};
      // An addend that another mostly cancels was added in order to round; those of each channel may cancel by chance
      // where they are small.
      if (floats && !product) {
        const double a = greatest_magnitude(r, c1), b = greatest_magnitude(r, c2), half = (a > b ? a : b) / 2;
        const double large = static_cast<double>(1 << digits_of(r.shape_of(v).type) / 2);
        const bool uniform = uniform_value(r, c1) && uniform_value(r, c2);
        if ((uniform || (a >= large && b >= large)) && !is_tame(r, c, half, 0x1p17)) return {};
      }
      note.remark_on(r.shape_of(v).type, product ? "(x * a) * b becomes x * c: it rounds, and overflows, otherwise"
                                                 : "(x + a) + b becomes x + c: it rounds otherwise");
      return r.add(Op{}, {x, c});
    }
  }
  return {};
}

// (x * c + a) * b as x * (c * b) + a * b: what follows a normalization becomes a part of it.
template <class R> constexpr value_id merge_scales(R& r, value_id v, pass_note& note) {
  if (!is_float(r.shape_of(v).type)) return {};
  for (std::size_t side = 0; side < 2; ++side) {
    const value_id b = r.input(v, side), sum = r.input(v, 1 - side);
    if (!r.template get_if<op::add>(sum) || !r.single_use(sum) || !is_foldable(r, b)) continue;
    for (std::size_t k = 0; k < 2; ++k) {
      const value_id a = r.input(sum, k), scaled = r.input(sum, 1 - k);
      if (!is_foldable(r, a) || !r.template get_if<op::mul>(scaled) || !r.single_use(scaled)) continue;
      for (std::size_t j = 0; j < 2; ++j) {
        const value_id c = r.input(scaled, j), x = r.input(scaled, 1 - j);
        if (!is_foldable(r, c) || is_foldable(r, x)) continue;
        if (!is_tame(r, c, 0x1p-40, 0x1p40, true) || !is_tame(r, b, 0x1p-40, 0x1p40, true) || !is_tame(r, a, 0, 0x1p16))
          return {};
        const auto elements = [&](value_id of) { return viewed_constant(r, of).from->elements(); };
        const auto product = [&](value_id other) {
          return fold_pointwise(r, op::mul{}, {other, b}, std::max(elements(other), elements(b)));
        };
        const value_id factor = product(c);
        const bool half = r.shape_of(v).type == dtype::f16;
        if (!factor || !is_tame(r, factor, half ? 0x1p-14 : 0x1p-80, 0x1p15, !half)) return {};
        const value_id addend = product(a);
        if (!addend || !is_tame(r, addend, 0, 0x1p15)) return {};
        note.remark_on(r.shape_of(v).type, "(x * a + b) * c becomes x * d + e: it rounds, and overflows, otherwise");
        return r.add(op::add{}, {r.add(op::mul{}, {x, factor}), addend});
      }
    }
  }
  return {};
}

template <class Op, class R> constexpr value_id unary(R& r, value_id x) { return r.add(Op{}, {x}); }

// a / sqrt(b), also where the root is broadcast: the division is done once for each root.
template <class R> constexpr value_id divide_by_root(R& r, value_id v) {
  if (!is_float(r.shape_of(v).type)) return {};
  const value_id a = r.input(v, 0), below = r.input(v, 1);
  const bool one = is_uniform(r, a, 1);
  value_id root = below;
  if (r.template get_if<op::multibroadcast>(root)) root = r.input(root, 0);
  if (!r.template get_if<op::sqrt>(root) || !r.single_use(root) || !r.single_use(below)) return {};
  if (!one && root == below) return {};
  value_id inverse = unary<op::rsqrt>(r, r.input(root, 0));
  if (root != below) inverse = r.add(op::multibroadcast{r.shape_of(below).lens}, {inverse});
  return one ? inverse : r.add(op::mul{}, {a, inverse});
}

template <class R> constexpr value_id simple_power(R& r, value_id v, pass_note& note) {
  const auto e = uniform_value(r, r.input(v, 1));
  const value_id x = r.input(v, 0);
  if (!e) return {};
  if (*e == 1) return x;
  if (*e == 2) return r.add(op::mul{}, {x, x});
  if (*e == 3) return r.add(op::mul{}, {r.add(op::mul{}, {x, x}), x});
  if (*e == 0.5) {
    note.remark_on(r.shape_of(v).type, "pow(x, 0.5) becomes sqrt(x): of -inf it gives NaN, not inf; of -0 it gives -0");
    return unary<op::sqrt>(r, x);
  }
  if (*e == -1 && is_float(r.shape_of(x).type)) return unary<op::recip>(r, x);
  return {};
}

// x * -y as -(x * y), where a sum reads it: it becomes a difference.
template <class R> constexpr value_id negated_product(R& r, value_id v) {
  if (!r.single_use(v)) return {};
  const value_id user{*r.users(v.instruction).begin(), 0};
  if (user.instruction == R::output_user) return {};
  if (!r.template get_if<op::add>(user) && !r.template get_if<op::sub>(user)) return {};
  for (std::size_t side = 0; side < 2; ++side) {
    const value_id n = r.input(v, side);
    if (!r.template get_if<op::neg>(n)) continue;
    const value_id x = r.input(n, 0), y = r.input(v, 1 - side);
    return unary<op::neg>(r, side == 0 ? r.add(op::mul{}, {x, y}) : r.add(op::mul{}, {y, x}));
  }
  return {};
}

template <class Inner, class Op> constexpr auto undone(std::string_view name) {
  return rewrite_each<Op>(name, [](auto& r, value_id v) {
    const value_id x = r.input(v, 0);
    return r.template get_if<Inner>(x) ? r.input(x, 0) : value_id{};
  });
}

// Idioms are recognized before anything is rearranged.
template <class Module> constexpr rewrite_counts recognize_idioms(Module& m, pass_note& note) {
  return apply_rewrites(m, rewrite_each<op::mul>("gelu", [](auto& r, value_id v) { return spelled_gelu(r, v); }),
                        rewrite_each<op::div>("divide_by_root",
                                              [&](auto& r, value_id v) {
                                                const value_id by = divide_by_root(r, v);
                                                if (by)
                                                  note.remark_on(
                                                      r.shape_of(v).type,
                                                      "x / sqrt(y) becomes x * rsqrt(y): it rounds once more");
                                                return by;
                                              }),
                        rewrite_each<op::recip>("rsqrt", [](auto& r, value_id v) {
                          const value_id x = r.input(v, 0);
                          return r.template get_if<op::sqrt>(x) ? unary<op::rsqrt>(r, r.input(x, 0)) : value_id{};
                        }));
}

template <class Module> constexpr rewrite_counts simplify_sums(Module& m, pass_note& note) {
  return apply_rewrites(
      m,
      rewrite_each<op::add>("add_zero",
                            [&](auto& r, value_id v) {
                              const value_id x = beside(r, v, 0);
                              if (x) note.remark_on(r.shape_of(v).type, "x + 0 becomes x: of -0 it gives -0, not 0");
                              return x;
                            }),
      rewrite_each<op::sub>(
          "sub_zero", [](auto& r, value_id v) { return is_uniform(r, r.input(v, 1), 0) ? r.input(v, 0) : value_id{}; }),
      rewrite_each<op::sub>("zero_minus",
                            [&](auto& r, value_id v) {
                              const dtype t = r.shape_of(v).type;
                              if ((!is_float(t) && !is_signed_integer(t)) || !is_uniform(r, r.input(v, 0), 0))
                                return value_id{};
                              note.remark_on(t, "0 - x becomes -x: of 0 it gives -0, not 0");
                              return unary<op::neg>(r, r.input(v, 1));
                            }),
      rewrite_each<op::sub>("sub_itself",
                            [](auto& r, value_id v) {
                              return is_integer(r.shape_of(v).type) && r.input(v, 0) == r.input(v, 1)
                                         ? scalar_like(r, v, 0)
                                         : value_id{};
                            }),
      rewrite_each<op::sub>("sub_constant",
                            [](auto& r, value_id v) {
                              const value_id x = r.input(v, 0), c = r.input(v, 1);
                              const dtype t = r.shape_of(v).type;
                              if (is_unsigned_integer(t) || !is_foldable(r, c)) return value_id{};
                              const value_id minus =
                                  fold_pointwise(r, op::neg{}, {c}, viewed_constant(r, c).from->elements());
                              return minus ? r.add(op::add{}, {x, minus}) : value_id{};
                            }),
      rewrite_each<op::sub>(
          "sub_negated",
          [](auto& r, value_id v) {
            const value_id n = r.input(v, 1);
            return r.template get_if<op::neg>(n) ? r.add(op::add{}, {r.input(v, 0), r.input(n, 0)}) : value_id{};
          }),
      rewrite_each<op::add>("add_negated",
                            [](auto& r, value_id v) {
                              for (std::size_t side = 0; side < 2; ++side) {
                                const value_id n = r.input(v, side);
                                if (r.template get_if<op::neg>(n))
                                  return r.add(op::sub{}, {r.input(v, 1 - side), r.input(n, 0)});
                              }
                              return value_id{};
                            }),
      rewrite_each<op::add>("merge_addends",
                            [&](auto& r, value_id v) { return merge_constants<op::add>(r, v, note); }));
}

template <class Module> constexpr rewrite_counts simplify_products(Module& m, pass_note& note) {
  return apply_rewrites(
      m, rewrite_each<op::mul>("mul_one", [](auto& r, value_id v) { return beside(r, v, 1); }),
      rewrite_each<op::mul>("mul_minus_one",
                            [](auto& r, value_id v) {
                              const value_id x = beside(r, v, -1);
                              return x ? unary<op::neg>(r, x) : value_id{};
                            }),
      rewrite_each<op::mul>("mul_negated", [](auto& r, value_id v) { return negated_product(r, v); }),
      rewrite_each<op::mul>("mul_zero",
                            [](auto& r, value_id v) {
                              return is_integer(r.shape_of(v).type) && beside(r, v, 0) ? scalar_like(r, v, 0)
                                                                                       : value_id{};
                            }),
      rewrite_each<op::div>(
          "div_one", [](auto& r, value_id v) { return is_uniform(r, r.input(v, 1), 1) ? r.input(v, 0) : value_id{}; }),
      rewrite_each<op::div>("div_power_of_two",
                            [](auto& r, value_id v) {
                              const auto c = uniform_value(r, r.input(v, 1));
                              if (!c || !is_float(r.shape_of(v).type) || !power_of_two(*c)) return value_id{};
                              return r.add(op::mul{}, {r.input(v, 0), scalar_like(r, v, 1 / *c)});
                            }),
      rewrite_each<op::div>("one_over",
                            [](auto& r, value_id v) {
                              return is_float(r.shape_of(v).type) && is_uniform(r, r.input(v, 0), 1)
                                         ? unary<op::recip>(r, r.input(v, 1))
                                         : value_id{};
                            }),
      rewrite_each<op::pow>("power", [&](auto& r, value_id v) { return simple_power(r, v, note); }),
      rewrite_each<op::mul>("merge_factors", [&](auto& r, value_id v) { return merge_constants<op::mul>(r, v, note); }),
      rewrite_each<op::mul>("merge_scales", [&](auto& r, value_id v) { return merge_scales(r, v, note); }));
}

template <class Module> constexpr rewrite_counts simplify_others(Module& m) {
  return apply_rewrites(
      m, undone<op::neg, op::neg>("neg_of_neg"), undone<op::logical_not, op::logical_not>("not_of_not"),
      rewrite_each<op::abs>("abs_of_neg",
                            [](auto& r, value_id v) {
                              const value_id x = r.input(v, 0);
                              return r.template get_if<op::neg>(x) ? unary<op::abs>(r, r.input(x, 0)) : value_id{};
                            }),
      rewrite{"relu_of_relu", match::op<op::relu>(match::as<0>(match::op<op::relu>())), by::capture<0>{}},
      rewrite{"abs_of_abs", match::op<op::abs>(match::as<0>(match::op<op::abs>())), by::capture<0>{}},
      rewrite{"max_itself", match::op<op::max>(match::capture<0>{}, match::capture<0>{}), by::capture<0>{}},
      rewrite{"min_itself", match::op<op::min>(match::capture<0>{}, match::capture<0>{}), by::capture<0>{}},
      rewrite_each<op::max>("max_zero",
                            [](auto& r, value_id v) {
                              const value_id x = beside(r, v, 0);
                              return x ? unary<op::relu>(r, x) : value_id{};
                            }),
      rewrite_each<op::convert>("convert_of_convert",
                                [](auto& r, value_id v) {
                                  const value_id mid = r.input(v, 0);
                                  if (!r.template get_if<op::convert>(mid)) return value_id{};
                                  const value_id x = r.input(mid, 0);
                                  const dtype from = r.shape_of(x).type, to = r.shape_of(v).type;
                                  if (!holds_all(r.shape_of(mid).type, from)) return value_id{};
                                  return from == to ? x : r.add(op::convert{to}, {x});
                                }),
      rewrite_each<op::where>("where_either", [](auto& r, value_id v) {
        const value_id a = r.input(v, 1), b = r.input(v, 2);
        if (a == b) return a;
        const auto c = uniform_value(r, r.input(v, 0));
        return !c ? value_id{} : *c != 0 ? a : b;
      }));
}

}  // namespace detail

/// Algebra that keeps every result within the rounding of merged constants: neutral elements, inverses, constants
/// gathered into one, powers and roots by simpler ops, the exporters' spellings of gelu and rsqrt. Not-a-number and
/// integer overflow behave as before, infinities too but for pow(-inf, 0.5), which becomes sqrt(-inf); the sign of a
/// zero may change. A product by zero is left alone unless it is an integer's. A division by a constant becomes a
/// product only where that is exact; a division by a square root becomes a product with its reciprocal (one rounding).
/// The note's remarks say what differs for floats.
template <class Program> constexpr pass_note simplify_algebra(Program& p) {
  pass_note note("simplify_algebra");
  for_each_module(p, [&](auto& m) {
    note.count(detail::recognize_idioms(m, note));
    note.count(detail::simplify_sums(m, note));
    note.count(detail::simplify_products(m, note));
    note.count(detail::simplify_others(m));
  });
  return note;
}

}  // namespace kiln

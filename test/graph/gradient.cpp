#include "kiln/graph/gradient.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "kiln/op/linear/dft.hpp"
#include "onnx/evaluate.hpp"

namespace kiln {
namespace {

using values = small_vector<value>;
using function = std::function<value(builder&, const values&)>;

argument numbers(const dims& lens, double first, double step) {
  argument a(shape{dtype::f64, lens});
  double x = first;
  for (double& v : a.as<double>()) {
    v = x;
    x += step;
    if (x > 1.6) x -= 2.9;  // both signs, no two alike
  }
  return a;
}

struct point {
  dims lens;
  double first = 0.3, step = 0.37;
};

values inputs(builder& b, const std::vector<point>& at) {
  values out;
  for (const point& p : at) out.push_back(b.input("x" + std::to_string(out.size()), dtype::f64, p.lens));
  return out;
}
double sum(const argument& a) {
  double s = 0;
  for (const double v : a.as<double>()) s += v;
  return s;
}

// Weighs the elements of f by numbers of their own, so that no two slopes are alike, and compares every derivative with
// a central difference.
void expect_slopes(const function& f, const std::vector<point>& at) {
  const auto weighed = [&](builder& b, const values& x) {
    const value y = f(b, x);
    const argument w = numbers(y.get_shape().lens, 0.9, 0.21);
    return y * b.constant(w.to_literal());
  };
  builder forward, both;
  forward.output(weighed(forward, inputs(forward, at)));
  const values xs = inputs(both, at);
  for (const value g : gradients(weighed(both, xs), {xs.data(), xs.size()})) both.output(g);
  const program p = forward.finish(), q = both.finish();
  small_vector<argument> x;
  for (const point& one : at) x.push_back(numbers(one.lens, one.first, one.step));
  const auto slopes = test::evaluate(q, x);
  ASSERT_EQ(slopes.size(), at.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(slopes[i].get_shape().lens, at[i].lens);
    for (std::size_t k = 0; k < slopes[i].as<double>().size(); ++k) {
      double& v = x[i].as<double>()[k];
      const double before = v, h = 1e-5;
      v = before + h;
      const double above = sum(test::evaluate(p, x)[0]);
      v = before - h;
      const double below = sum(test::evaluate(p, x)[0]);
      v = before;
      const double expected = (above - below) / (2 * h);
      EXPECT_NEAR(slopes[i].as<double>()[k], expected, 1e-6 * (1 + std::fabs(expected)))
          << "input " << i << " at " << k;
    }
  }
}

template <class Op> function one(const Op& o) {
  return [o](builder&, const values& x) { return x[0] | o; };
}
template <class Op> function two(const Op& o) {
  return [o](builder& b, const values& x) { return b.add(o, x[0], x[1]); };
}

TEST(gradient, of_elementwise_ops) {
  const std::vector<point> both_signs{{{2, 5}}}, above{{{2, 3}, 0.2, 0.11}}, above_one{{{2, 3}, 1.05, 0.08}},
      inside{{{2, 3}, -0.85, 0.29}};
  for (const function& f : {one(op::abs{}),
                            one(op::atan{}),
                            one(op::asinh{}),
                            one(op::celu{0.7f}),
                            one(op::cos{}),
                            one(op::cosh{}),
                            one(op::elu{0.6f}),
                            one(op::erf{}),
                            one(op::exp{}),
                            one(op::expm1{}),
                            one(op::floor{}),
                            one(op::gelu{}),
                            one(op::gelu{true}),
                            one(op::hard_sigmoid{0.9f, 0.4f}),
                            one(op::hard_swish{}),
                            one(op::identity{}),
                            one(op::leaky_relu{0.2f}),
                            one(op::mish{}),
                            one(op::neg{}),
                            one(op::relu{}),
                            one(op::selu{}),
                            one(op::shrink{0.5f, 0.1f}),
                            one(op::sigmoid{}),
                            one(op::sign{}),
                            one(op::sin{}),
                            one(op::sinh{}),
                            one(op::softplus{}),
                            one(op::softsign{}),
                            one(op::tan{}),
                            one(op::tanh{}),
                            one(op::thresholded_relu{0.4f})})
    expect_slopes(f, both_signs);
  for (const function& f : {one(op::log{}), one(op::log1p{}), one(op::recip{}), one(op::rsqrt{}), one(op::sqrt{})})
    expect_slopes(f, above);
  expect_slopes(one(op::acosh{}), above_one);
  for (const function& f : {one(op::acos{}), one(op::asin{}), one(op::atanh{})}) expect_slopes(f, inside);
  expect_slopes(one(op::hard_swish{}), {{{4}, -4.5, 0.01}});
  expect_slopes(one(op::hard_swish{}), {{{4}, 3.5, -0.01}});
}

TEST(gradient, of_two_operands_that_broadcast) {
  const std::vector<point> at{{{2, 1, 3}}, {{4, 1}, -0.65, 0.43}};
  for (const function& f : {two(op::add{}), two(op::sub{}), two(op::mul{}), two(op::div{}), two(op::max{}),
                            two(op::min{}), two(op::square_difference{}), two(op::fmod{}), two(op::mod{})})
    expect_slopes(f, at);
  expect_slopes(two(op::prelu{}), {{{2, 3}}, {{3}, 0.2, 0.1}});
  expect_slopes(two(op::pow{}), {{{2, 3}, 0.2, 0.25}, {{3}, -0.65, 0.7}});
  const auto squared = [](builder& b, const values& x) { return x[0].pow(b.scalar(dtype::f64, 2.0)); };
  expect_slopes(squared, {{{2, 3}, -1, 0.4}});
  const auto chosen = [](builder&, const values& x) { return (x[0] > x[1]).where(x[0] * x[1], x[1]); };
  expect_slopes(chosen, at);
  const auto clipped = [](builder& b, const values& x) { return b.add(op::clip{}, x[0], x[1], x[2]); };
  expect_slopes(clipped, {{{2, 5}}, {{}, -0.4}, {{1}, 0.5}});
}

TEST(gradient, of_reductions) {
  const std::vector<point> at{{{2, 3, 4}}};
  for (const ints& axes : {ints{1}, ints{0, -1}, ints{}}) {
    for (const function& f :
         {one(op::reduce_sum{axes}), one(op::reduce_mean{axes}), one(op::reduce_max{axes}), one(op::reduce_min{axes}),
          one(op::reduce_l1{axes}), one(op::reduce_l2{axes}), one(op::reduce_sum_square{axes})})
      expect_slopes(f, at);
  }
  expect_slopes(one(op::reduce_prod{{-2}}), at);
  expect_slopes(one(op::reduce_prod{{0}}), {{{3}, 0, 0.5}});  // with a zero
  const auto softmax = [](builder&, const values& x) { return x[0].softmax(1); };
  expect_slopes(softmax, at);
  const auto norm = [](builder&, const values& x) { return x[0].normalize({-1}) * x[1]; };
  expect_slopes(norm, {{{2, 3}}, {{3}}});
}

TEST(gradient, of_views) {
  const std::vector<point> at{{{2, 3, 4}}};
  for (const function& f :
       {one(op::transpose{{2, 0, 1}}), one(op::transpose{}), one(op::transpose{{-1, 0, 1}}), one(op::reshape{{4, 6}}),
        one(op::flatten{2}), one(op::unsqueeze{{0, 2}}), one(op::reverse{{1}}), one(op::multibroadcast{{5, 2, 3, 4}}),
        one(op::slice{{1}, {1}, {3}, {}}), one(op::slice{{2, 0}, {-1, 0}, {-100, 2}, {-2, 1}}),
        one(op::slice{{2}, {0}, {4}, {3}}), one(op::slice{{-1}, {3}, {0}, {-1}}), one(op::expect_dims{{2, 3, 4}})})
    expect_slopes(f, at);
  expect_slopes(one(op::squeeze{{1}}), {{{2, 1, 4}}});
  expect_slopes(one(op::broadcast{1, {2, 3, 4}}), {{{3}}});
  expect_slopes(one(op::broadcast{0, {2, 3, 4}}), {{{2, 3}}});
}

TEST(gradient, of_picking_and_joining) {
  const auto indices = [](builder& b, const dims& lens, std::initializer_list<std::int64_t> v) {
    return b.constant<std::int64_t>(dtype::i64, lens, std::span<const std::int64_t>(v.begin(), v.size()));
  };
  const auto joined = [](builder& b, const values& x) { return b.add(op::concat{1}, x[0], x[1], x[0]); };
  expect_slopes(joined, {{{2, 1}}, {{2, 3}}});
  for (const std::int64_t axis : {0, 1, -1})
    expect_slopes(
        [&](builder& b, const values& x) {
          return x[0].gather(indices(b, {2, 2}, {1, 0, 1, -1}), axis);
        },
        {{{2, 3, 2}}});
  expect_slopes([&](builder& b, const values& x) { return x[0].gather(indices(b, {}, {1}), 1); }, {{{2, 3}}});
  expect_slopes(
      [&](builder& b, const values& x) {
        return b.add(op::gather_elements{1}, x[0], indices(b, {2, 2}, {0, 0, 2, 1}));
      },
      {{{2, 3}}});
  expect_slopes(
      [&](builder& b, const values& x) {
        return b.add(op::gather_nd{}, x[0], indices(b, {3, 1}, {1, 1, 0}));
      },
      {{{2, 3}}});
  for (const auto mode : {op::scatter_mode::none, op::scatter_mode::add}) {
    expect_slopes(
        [&](builder& b, const values& x) {
          return b.add(op::scatter_elements{1, mode}, x[0], indices(b, {2, 2}, {0, 2, 2, 1}), x[1]);
        },
        {{{2, 3}}, {{2, 2}, 0.7, 0.17}});
    expect_slopes(
        [&](builder& b, const values& x) {
          return b.add(op::scatter_nd{mode}, x[0], indices(b, {1, 1}, {1}), x[1]);
        },
        {{{2, 3}}, {{1, 3}, 0.7, 0.17}});
  }
  expect_slopes(
      [](builder& b, const values& x) {
        return b.add(op::pad{op::pad_mode::constant, {1, -1, 0, 2}}, x[0], x[1]);
      },
      {{{2, 3}}, {{}, 0.7}});
  expect_slopes(one(op::cumsum{1, true, false}), {{{2, 3}}});
  expect_slopes(one(op::tri{true, 0}), {{{3, 3}}});
}

TEST(gradient, of_products_and_convolutions) {
  const auto product = [](builder&, const values& x) { return x[0].dot(x[1]); };
  expect_slopes(product, {{{2, 3}}, {{3, 4}}});
  expect_slopes(product, {{{2, 2, 3}}, {{3, 4}}});
  expect_slopes(product, {{{2, 1, 2, 3}}, {{4, 3, 2}}});
  expect_slopes(two(op::convolution{}), {{{1, 2, 4, 3}}, {{3, 2, 2, 2}}});
  expect_slopes(two(op::convolution{{2, 1}, {1, 2}, {1, 0, 0, 1}, 1}), {{{2, 1, 6, 5}}, {{2, 1, 3, 2}}});
  expect_slopes(two(op::convolution{{2}, {}, {1, 1}, 2}), {{{2, 4, 6}}, {{6, 2, 2}}});
  expect_slopes(two(op::convolution{{}, {}, {1, 1}, 3}), {{{1, 3, 4}}, {{3, 1, 3}}});
  expect_slopes(two(op::deconvolution{{2, 1}, {}, {1, 0}, {1, 0, 0, 0}, 1}), {{{1, 2, 3, 2}}, {{2, 3, 2, 2}}});
  expect_slopes(two(op::deconvolution{{2}, {}, {}, {}, 2}), {{{2, 4, 3}}, {{4, 1, 3}}});
}

TEST(gradient, of_fourier_transforms) {
  for (const std::int64_t length : {0, 3, 8})
    for (const bool inverse : {false, true}) {
      expect_slopes(one(op::dft{1, inverse, false, length}), {{{2, 5, 2, 2}}});
      expect_slopes(one(op::dft{-2, inverse, false, length}), {{{5, 1}}});
      expect_slopes(one(op::dft{-2, inverse, true, length}), {{{2, 4, inverse ? 2 : 1}}});
    }
}

TEST(gradient, of_pooling) {
  const auto pool = [](op::pooling o) { return one(o); };
  using enum op::pooling_mode;
  for (const auto mode : {max, average}) {
    expect_slopes(pool({.mode = mode, .lengths = {2, 3}, .stride = {1, 2}}), {{{1, 2, 3, 5}}});
    expect_slopes(pool({.mode = mode, .lengths = {3}, .stride = {2}, .dilation = {2}, .pads = {1, 1}}), {{{2, 1, 8}}});
    expect_slopes(pool({.mode = mode, .lengths = {3}, .stride = {2}, .ceil_mode = true}), {{{1, 1, 6}}});
  }
  expect_slopes(pool({.mode = average, .lengths = {3}, .pads = {1, 1}, .count_include_pad = true}), {{{1, 1, 4}}});
  expect_slopes(pool({.mode = average,
                      .lengths = {3},
                      .stride = {3},
                      .pads = {1, 1},
                      .ceil_mode = true,
                      .count_include_pad = true}),
                {{{1, 1, 6}}});
}

TEST(gradient, sums_over_every_way) {
  const auto net = [](builder&, const values& x) {
    const value hidden = x[0].dot(x[1]).tanh();
    return (hidden * hidden + hidden * x[2]).reduce_sum({0, 1}) * x[2];
  };
  expect_slopes(net, {{{2, 3}}, {{3, 2}}, {{2, 2}}});
}

TEST(gradient, is_zero_where_nothing_depends) {
  builder b;
  const value x = b.input("x", dtype::f32, {2}), y = b.input("y", dtype::f32, {3});
  const value xs[] = {x, y};
  const auto g = gradients(x * 2.0f, xs);
  b.output(g[0]), b.output(g[1]);
  const auto out = test::evaluate(b.finish(), {argument(shape{dtype::f32, {2}}), argument(shape{dtype::f32, {3}})});
  EXPECT_EQ(out[0].to<float>(), (small_vector<float>{2, 2}));
  EXPECT_EQ(out[1].to<float>(), (small_vector<float>{0, 0, 0}));
}

TEST(gradient, goes_through_one_of_xs_to_none_behind_it) {
  builder b;
  const value x = b.input("x", dtype::f32, {1}), h = x * 3.0f;
  const value xs[] = {x, h};
  const auto g = gradients(h * h + x, xs);
  b.output(g[0]), b.output(g[1]);
  const float two[] = {2};
  const auto out = test::evaluate(b.finish(), {argument::of<float>({1}, two)});
  EXPECT_EQ(out[0].to<float>()[0], 1);
  EXPECT_EQ(out[1].to<float>()[0], 12);
}

TEST(gradient, names_the_op_without_a_derivative) {
  builder b;
  const value x = b.input("x", dtype::f32, {2, 2});
  const value xs[] = {x};
  try {
    gradients(b.add(op::topk{.k = 1, .axis = 0}, x), xs);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::unsupported);
    EXPECT_NE(std::string(e.what()).find("op 'topk' has no derivative"), std::string::npos) << e.what();
  }
  const value n = b.input("n", dtype::i32, {2});
  const value whole[] = {n};
  EXPECT_THROW(gradients(x, whole), error);
}

}  // namespace
}  // namespace kiln

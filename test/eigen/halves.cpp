// Networks of 16-bit floats on the Eigen target: the kernels of f32 run them, and round as the program says.
#include <gmock/gmock.h>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

// A value rounded to the type once, and an error of the sums' order before that.
tolerance close(dtype t) { return t == dtype::f16 ? tolerance{2e-3, 2e-3} : tolerance{2e-2, 2e-2}; }

value weights(builder& b, dtype t, const dims& lens, unsigned seed = 9) {
  return b.constant(random_argument({t, lens}, seed, -.5, .5).to_literal());
}

void expect_no_reference(const std::function<void(builder&)>& make) {
  const executable e = compile_eigen(make);
  for (const step_info& s : e.report().steps) EXPECT_FALSE(s.fallback) << s.kernel;
}

TEST(halves, products_convolutions_and_pooling_have_kernels) {
  for (const dtype t : {dtype::f16, dtype::bf16}) {
    SCOPED_TRACE(to_string(t));
    const auto make = [&](builder& b) {
      const value x = b.input("x", t, {2, 8, 9, 9});
      value y = x.conv(weights(b, t, {16, 8, 3, 3}), {.pads = {1, 1, 1, 1}});
      y = (y + b.input("bias", t, {1, 16, 1, 1})).relu().pool({.lengths = {2, 2}, .stride = {2, 2}});
      b.output(y);
      b.output(y.reshape({2, 256}).dot(weights(b, t, {256, 10})).softmax());
    };
    expect_same(make, close(t));
    expect_no_reference(make);
  }
}

TEST(halves, attention_and_norms_have_kernels) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f16, {2, 7, 16});
    const auto heads = [&](unsigned seed) {
      return x.dot(weights(b, dtype::f16, {16, 16}, seed).broadcast_to({2, 16, 16}))
          .reshape({2, 7, 2, 8})
          .transpose({0, 2, 1, 3});
    };
    const value scores = heads(1).dot(heads(2).transpose({0, 1, 3, 2})) * .25f;
    const value y = scores.softmax().dot(heads(3)).transpose({0, 2, 1, 3}).reshape({2, 7, 16}) + x;
    const value centered = y - y.reduce_mean({2});
    b.output(centered * ((centered * centered).reduce_mean({2}) + 1e-3f).rsqrt());
  };
  expect_same(make, tolerance{1e-2, 1e-2});
  expect_no_reference(make);
}

TEST(halves, conversions_of_the_program_round) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f16, {4, 33});
    b.output(x.dot(weights(b, dtype::f16, {33, 16})).convert(dtype::f32));
    b.output((x.dot(weights(b, dtype::f16, {33, 4})) * 60000.F).convert(dtype::f32));
  };
  for (const argument& a : compile_eigen(make).run(random_inputs(make, 3, 1, 4)))
    for (const float v : a.to<float>()) EXPECT_EQ(static_cast<float>(half(v)), v);
}

TEST(halves, results_in_every_layout_and_single_products) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f16, {3, 5, 6, 7});
    b.output(x.conv(weights(b, dtype::f16, {4, 5, 1, 1})));
    b.output(x.conv(b.input("w", dtype::f16, {4, 5, 3, 2})));
    b.output(b.input("a", dtype::f16, {1, 33}).dot(b.input("c", dtype::f16, {33, 5})));
    b.output(b.input("d", dtype::f16, {2, 3, 4}).dot(b.input("e", dtype::f16, {2, 4, 5})).convert(dtype::f32));
  };
  expect_same(make, close(dtype::f16));
}

// 2049 is no half: it rounds to 2048, and the program asks whether it is more.
TEST(halves, conditions_are_taken_from_rounded_values) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f16, {1, 2});
    const value sum = x.dot(b.constant(literal::of<float>({dtype::f16, {2, 1}}, std::vector<float>{1, 1})));
    b.output(b.add(op::greater{}, sum, b.scalar(dtype::f16, 2048.f).broadcast_to({1, 1})));
    b.output(sum.convert(dtype::i32));
  };
  argument x(shape{dtype::f16, {1, 2}});
  const float values[] = {2048, 1};
  encode(dtype::f16, values, x.data(), 2);
  const auto found = compile_eigen(make).run(std::vector<argument>{x});
  EXPECT_FALSE(found[0].to<bool>()[0]);
  EXPECT_EQ(found[1].to<std::int64_t>()[0], 2048);
}

}  // namespace
}  // namespace kiln::testing

#include "kiln/pass/constants.hpp"

#include <gtest/gtest.h>

#include "kiln/graph/builder.hpp"

namespace kiln {
namespace {

// A program that gives what `make(builder)` gives, and a rewriter over it.
struct fixture {
  program p;
  rewriter<module_graph> r;
  template <class Make>
  explicit fixture(Make make)
      : p([&] {
          builder b;
          b.output(make(b));
          return b.finish();
        }()),
        r(p.main()) {}
  value_id out() const { return p.main().outputs[0]; }
};

value iota(builder& b, const dims& lens) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < product(lens).value(); ++i) x.push_back(static_cast<float>(i));
  return b.constant<float>(dtype::f32, lens, x);
}
std::vector<float> floats(const literal& l) {
  const auto x = l.to<float>();
  return {x.begin(), x.end()};
}

TEST(constants, are_seen_through_views) {
  const fixture f([](builder& b) {
    return iota(b, {2, 3}).transpose({1, 0}).slice({.axes = {0}, .starts = {1}, .ends = {3}});
  });
  const constant_view c = viewed_constant(f.r, f.out());
  ASSERT_TRUE(c);
  EXPECT_EQ(c.at.lens, (dims{2, 2}));
  EXPECT_EQ(floats(laid_out(*c.from, c.at)), (std::vector<float>{1, 4, 2, 5}));
}

TEST(constants, a_view_that_copies_or_an_input_is_none) {
  const fixture copies([](builder& b) { return iota(b, {2, 3}).transpose({1, 0}).reshape({6}); });
  EXPECT_FALSE(viewed_constant(copies.r, copies.out()));
  const fixture input([](builder& b) { return b.input("x", dtype::f32, {2}).reshape({1, 2}); });
  EXPECT_FALSE(viewed_constant(input.r, input.out()));
}

TEST(constants, of_one_value) {
  const fixture same([](builder& b) { return b.scalar(dtype::f32, 2.5).broadcast_to({2, 3}); });
  EXPECT_EQ(uniform_value(same.r, same.out()), 2.5);
  const fixture differ([](builder& b) { return iota(b, {2}); });
  EXPECT_FALSE(uniform_value(differ.r, differ.out()));
}

TEST(constants, a_fold_does_not_grow_by_broadcasts) {
  fixture f([](builder& b) {
    const value row = iota(b, {3}).broadcast_to({2, 3}), two = b.scalar(dtype::f32, 2).broadcast_to({2, 3});
    return row * two;
  });
  const value_id sum = f.out();
  const operation mul = f.r.producer(sum).op;
  const small_vector<value_id> in = f.r.producer(sum).inputs;
  EXPECT_FALSE(fold_pointwise(f.r, mul, in, 2)) << "more elements than allowed";
  const value_id made = fold_pointwise(f.r, mul, in, 100);
  ASSERT_TRUE(made);
  EXPECT_EQ(f.r.shape_of(made).lens, (dims{2, 3}));
  const literal* core = f.r.constant(f.r.input(made, 0));
  ASSERT_TRUE(core);
  EXPECT_EQ(core->get_shape().lens, (dims{3}));
  EXPECT_EQ(floats(*core), (std::vector<float>{0, 2, 4}));
}

TEST(constants, many_elements_are_folded_in_parts) {
  constexpr std::int64_t rows = 300, columns = 100;  // more than one part
  fixture f([&](builder& b) {
    return iota(b, {columns, rows}).transpose({1, 0}) + iota(b, {rows, 1}).broadcast_to({rows, columns});
  });
  const value_id made = fold_pointwise(f.r, f.r.producer(f.out()).op, f.r.producer(f.out()).inputs, rows * columns);
  ASSERT_TRUE(made);
  const std::vector<float> x = floats(*f.r.constant(made));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t k = 0; k < columns; ++k)
      ASSERT_EQ(x[static_cast<std::size_t>(i * columns + k)], static_cast<float>(k * rows + i + i));
}

TEST(constants, leading_ones_go) {
  EXPECT_EQ(without_leading_ones({1, 1, 3, 1}), (dims{3, 1}));
  EXPECT_EQ(without_leading_ones({1, 1}), dims{});
}

}  // namespace
}  // namespace kiln

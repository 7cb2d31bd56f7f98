#include "kiln/pass/reduce_before_reshape.hpp"

#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) { return reduce_before_reshape(p); };

TEST(reduce_before_reshape, a_norm_of_merged_dims_is_one_of_the_dims) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 3, 4, 5});
    auto y = x.reshape({2, 1, 60});
    auto centered = y - y.reduce_mean({2});
    b.output((centered * ((centered * centered).reduce_mean({2}) + 0.5f).rsqrt()).reshape({2, 3, 4, 5}));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[2, 3, 4, 5]\n"
                      "  %1 = reduce_mean{axes = [1, 2, 3]}(%0) : f32[2, 1, 1, 1]\n"
                      "  %2 = multibroadcast{to = [2, 3, 4, 5]}(%1) : f32[2, 3, 4, 5]\n"
                      "  %3 = sub(%0, %2) : f32[2, 3, 4, 5]\n"
                      "  %4 = mul(%3, %3) : f32[2, 3, 4, 5]\n"
                      "  %5 = reduce_mean{axes = [1, 2, 3]}(%4) : f32[2, 1, 1, 1]\n"
                      "  %6 = literal f32[] {0.5}\n"
                      "  %7 = multibroadcast{to = [2, 1, 1, 1]}(%6) : f32[2, 1, 1, 1]\n"
                      "  %8 = add(%5, %7) : f32[2, 1, 1, 1]\n"
                      "  %9 = rsqrt(%8) : f32[2, 1, 1, 1]\n"
                      "  %10 = multibroadcast{to = [2, 3, 4, 5]}(%9) : f32[2, 3, 4, 5]\n"
                      "  %11 = mul(%3, %10) : f32[2, 3, 4, 5]\n"
                      "  return output_0 = %11\n",
                      run);
}

TEST(reduce_before_reshape, any_reduction_of_any_run_of_dims) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 3, 1, 4, 5});
    b.output(x.reshape({6, 20}).reduce_max({1}).reshape({3, 2}));
    b.output(x.reshape({1, 6, 4, 5}).reduce_sum({1, 3}).reshape({4}));
    b.output((x.reshape({24, 5}).exp() | op::reduce_l2{{0}}).reshape({5}));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[2, 3, 1, 4, 5]\n"
                      "  %1 = reduce_max{axes = [2, 3, 4]}(%0) : f32[2, 3, 1, 1, 1]\n"
                      "  %2 = reshape{to = [3, 2]}(%1) : f32[3, 2]\n"
                      "  %3 = reduce_sum{axes = [0, 1, 4]}(%0) : f32[1, 1, 1, 4, 1]\n"
                      "  %4 = reshape{to = [4]}(%3) : f32[4]\n"
                      "  %5 = exp(%0) : f32[2, 3, 1, 4, 5]\n"
                      "  %6 = reduce_l2{axes = [0, 1, 2, 3]}(%5) : f32[1, 1, 1, 1, 5]\n"
                      "  %7 = reshape{to = [5]}(%6) : f32[5]\n"
                      "  return output_0 = %2\n  return output_1 = %4\n  return output_2 = %7\n",
                      run);
}

TEST(reduce_before_reshape, groups_that_split_dims_and_values_read_elsewhere_stay) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 6, 4});
    b.output(x.reshape({2, 3, 8}).reduce_mean({2}).reshape({6}));  // half of a dim
    auto y = x.reshape({2, 24}), mean = y.reduce_mean({1});
    b.output((y - mean).reshape({2, 6, 4}));
    b.output(mean);
    auto z = b.input("z", dtype::f32, {2, 24});
    b.output((y * z - (y * z).reduce_sum({1})).reshape({2, 6, 4}));  // another operand
    auto one = b.input("one", dtype::f32, {4}).reshape({1, 4});
    b.output(one.reduce_sum({0}).reshape({2, 2}));  // folds nothing
  };
  auto p = built<builder>(build);
  EXPECT_FALSE(reduce_before_reshape(p).changed());
}

// a constant of one number has extents of its own, which a reduction of it folds: the count of a padded row's elements
TEST(reduce_before_reshape, a_constant_that_is_folded_keeps_its_extents) {
  const auto divided = [](auto& b, const dims& counted) {
    auto x = b.input("x", dtype::f32, {2, 4, 5});
    const auto ones = b.scalar(dtype::f32, 1).broadcast_to(counted);
    b.output((x.reshape({2, 20}).reduce_sum({1}) / ones.reduce_sum({1})).reshape({2}));
  };
  const auto other = [&](auto& b) { divided(b, {2, 7}); };
  auto p = built<builder>(other);
  EXPECT_FALSE(reduce_before_reshape(p).changed());
  const auto same = [&](auto& b) { divided(b, {2, 20}); };
  auto q = built<builder>(same);
  EXPECT_TRUE(reduce_before_reshape(q).changed());
  EXPECT_TRUE(find_faults(q).empty());
  EXPECT_TRUE(same_results(built<builder>(same), q, 1e-6));

  builder b;
  const dimension n = dimension::symbol("n", 1, 64), s = dimension::symbol("s", 1, 64);
  auto x = b.input("x", dtype::f32, {n, 4, 5});
  b.input("y", dtype::f32, {n, s});
  const auto ones = b.scalar(dtype::f32, 1).broadcast_to({n, s});
  b.output((x.reshape({n, 20}).reduce_sum({1}) / ones.reduce_sum({1})).reshape({n}));
  auto symbolic = b.finish();
  EXPECT_FALSE(reduce_before_reshape(symbolic).changed());
}

// longer than any group, and than a stack that each op would take a part of
TEST(reduce_before_reshape, a_long_chain_stays) {
  builder b;
  auto x = b.input("x", dtype::f32, {2, 3, 4}).reshape({2, 12}).reduce_sum({1});
  for (int k = 0; k < 100'000; ++k) x = -x;
  b.output(x.reshape({2}));
  auto p = b.finish();
  EXPECT_FALSE(reduce_before_reshape(p).changed());
}

TEST(reduce_before_reshape, symbolic_batches) {
  builder b;
  const dimension n = dimension::symbol("n", 1, 64);
  auto x = b.input("x", dtype::f32, {n, 3, 4, 5});
  auto y = x.reshape({n, 1, 60});
  b.output((y - y.reduce_mean({2})).reshape({n, 3, 4, 5}));
  auto p = b.finish();
  EXPECT_TRUE(reduce_before_reshape(p).changed());
  EXPECT_TRUE(find_faults(p).empty());
  EXPECT_EQ(p.main().size(), 4u);
}

}  // namespace
}  // namespace kiln::test

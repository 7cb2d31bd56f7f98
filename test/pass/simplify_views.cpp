#include "kiln/pass/simplify_views.hpp"

#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) { return simplify_views(p); };

TEST(simplify_views, renamed_extents_are_one_reshape) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 1, 6});
    b.output(x.squeeze({1}).unsqueeze({0}).flatten(2).reshape({3, 4}));
    b.output(x.transpose({1, 0, 2}));
    b.output(x.unsqueeze({0}).squeeze({0}));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[2, 1, 6]\n"
                      "  %1 = reshape{to = [3, 4]}(%0) : f32[3, 4]\n"
                      "  %2 = reshape{to = [1, 2, 6]}(%0) : f32[1, 2, 6]\n"
                      "  return output_0 = %1\n  return output_1 = %2\n  return output_2 = %0\n",
                      run);
}

TEST(simplify_views, permutations_compose) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 3, 4});
    b.output(x.transpose({1, 2, 0}).transpose({1, 0, 2}));
    b.output(x.transpose({1, 2, 0}).transpose({2, 0, 1}));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[2, 3, 4]\n"
                      "  %1 = transpose{permutation = [2, 1, 0]}(%0) : f32[4, 3, 2]\n"
                      "  return output_0 = %1\n  return output_1 = %0\n",
                      run);
}

TEST(simplify_views, slices_compose) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {20, 6});
    b.output(x.slice({.axes = {0}, .starts = {2}, .ends = {18}, .steps = {3}})
                 .slice({.axes = {1, 0}, .starts = {-2, 1}, .ends = {6, 6}, .steps = {1, 2}}));
    b.output(x.slice({.axes = {0}, .starts = {5}, .ends = {20}}).slice({.axes = {0}, .starts = {3}, .ends = {3}}));
    b.output((x | op::slice{{0}, {-1}, {-100}, {-1}}).slice({.axes = {0}, .starts = {1}, .ends = {4}}));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[20, 6]\n"
                      "  %1 = slice{axes = [0, 1], starts = [5, 4], ends = [18, 6], steps = [6, 1]}(%0) : f32[3, 2]\n"
                      "  %2 = slice{axes = [0], starts = [8], ends = [8], steps = [1]}(%0) : f32[0, 6]\n"
                      "  %3 = slice{axes = [0], starts = [-1], ends = [-100], steps = [-1]}(%0) : f32[20, 6]\n"
                      "  %4 = slice{axes = [0], starts = [1], ends = [4], steps = []}(%3) : f32[3, 6]\n"
                      "  return output_0 = %1\n  return output_1 = %2\n  return output_2 = %4\n",
                      run);
}

TEST(simplify_views, broadcasts_stand_last_and_are_one) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {3});
    b.output(x.broadcast_to({2, 3}).broadcast_to({4, 2, 3}));
    b.output(x | op::broadcast{1, {2, 3, 4}});
    b.output(x.broadcast_to({2, 3}).transpose({1, 0}));
    b.output(x.unsqueeze({0}).broadcast_to({2, 3}).slice({.starts = {1, 1}, .ends = {2, 3}}));
    b.output(b.input("s", dtype::f32, {1}).broadcast_to({2, 3}).reshape({6}));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[3]\n"
                      "  %1 = s : f32[1]\n"
                      "  %2 = multibroadcast{to = [4, 2, 3]}(%0) : f32[4, 2, 3]\n"
                      "  %3 = reshape{to = [3, 1]}(%0) : f32[3, 1]\n"
                      "  %4 = multibroadcast{to = [2, 3, 4]}(%3) : f32[2, 3, 4]\n"
                      "  %5 = reshape{to = [3, 1]}(%0) : f32[3, 1]\n"
                      "  %6 = multibroadcast{to = [3, 2]}(%5) : f32[3, 2]\n"
                      "  %7 = reshape{to = [1, 3]}(%0) : f32[1, 3]\n"
                      "  %8 = slice{axes = [1], starts = [1], ends = [3], steps = [1]}(%7) : f32[1, 2]\n"
                      "  %9 = reshape{to = []}(%1) : f32[]\n"
                      "  %10 = multibroadcast{to = [6]}(%9) : f32[6]\n"
                      "  return output_0 = %2\n  return output_1 = %4\n  return output_2 = %6\n  return output_3 = %8\n"
                      "  return output_4 = %10\n",
                      run);
}

TEST(simplify_views, views_cancel_across_a_pointwise_op) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 3, 4});
    b.output((x.transpose({0, 2, 1}).relu() * 2.0f).transpose({0, 2, 1}));
    b.output(x.reshape({6, 4}).tanh().reshape({24}));
    auto kept = x.transpose({2, 1, 0}).exp();
    b.output(kept + kept);
    b.output(kept.transpose({2, 1, 0}));
  };
  KILN_EXPECT_REWRITE(
      build,
      "main:\n"
      "  %0 = x : f32[2, 3, 4]\n"
      "  %1 = relu(%0) : f32[2, 3, 4]\n"
      "  %2 = literal f32[] {2}\n"
      "  %3 = multibroadcast{to = [2, 3, 4]}(%2) : f32[2, 3, 4]\n"
      "  %4 = mul(%1, %3) : f32[2, 3, 4]\n"
      "  %5 = tanh(%0) : f32[2, 3, 4]\n"
      "  %6 = reshape{to = [24]}(%5) : f32[24]\n"
      "  %7 = transpose{permutation = [2, 1, 0]}(%0) : f32[4, 3, 2]\n"
      "  %8 = exp(%7) : f32[4, 3, 2]\n"
      "  %9 = add(%8, %8) : f32[4, 3, 2]\n"
      "  %10 = transpose{permutation = [2, 1, 0]}(%8) : f32[2, 3, 4]\n"
      "  return output_0 = %4\n  return output_1 = %6\n  return output_2 = %9\n  return output_3 = %10\n",
      run);
}

TEST(simplify_views, a_group_of_pointwise_ops_and_a_turned_constant) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 3, 4});
    const float bias[] = {1, 2, 3};
    auto c = b.template constant<float>(dtype::f32, {3}, bias);
    auto y = x.transpose({0, 2, 1}) + c;
    b.output((y * y.sigmoid()).transpose({0, 2, 1}));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[2, 3, 4]\n"
                      "  %1 = literal f32[3] {1, 2, 3}\n"
                      "  %2 = reshape{to = [3, 1]}(%1) : f32[3, 1]\n"
                      "  %3 = multibroadcast{to = [2, 3, 4]}(%2) : f32[2, 3, 4]\n"
                      "  %4 = add(%0, %3) : f32[2, 3, 4]\n"
                      "  %5 = sigmoid(%4) : f32[2, 3, 4]\n"
                      "  %6 = mul(%4, %5) : f32[2, 3, 4]\n"
                      "  return output_0 = %6\n",
                      run);
}

TEST(simplify_views, a_group_that_is_read_elsewhere_stays) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 3});
    auto y = x.transpose({1, 0}).exp();
    b.output((y * y.neg()).transpose({1, 0}));
    b.output(y.reduce_sum({0}));
  };
  auto p = built<builder>(build);
  EXPECT_FALSE(simplify_views(p).changed());
}

// longer than any group, and than a stack that each op would take a part of
TEST(simplify_views, a_long_chain_between_views_stays) {
  builder b;
  auto x = b.input("x", dtype::f32, {2, 6}).reshape({3, 4});
  for (int k = 0; k < 100'000; ++k) x = -x;
  b.output(x.reshape({2, 6}));
  auto p = b.finish();
  EXPECT_FALSE(simplify_views(p).changed());
}

TEST(simplify_views, symbolic_slices_compose) {
  builder b;
  const dimension n = dimension::symbol("n", 8, 64);
  auto x = b.input("x", dtype::f32, {n, 4});
  b.output(x.slice({.axes = {0}, .starts = {2}, .ends = {n}}).slice({.axes = {0}, .starts = {1}, .ends = {-1}}));
  auto p = b.finish();
  simplify_views(p);
  EXPECT_TRUE(find_faults(p).empty());
  EXPECT_EQ(print(p).str(),
            "main:\n"
            "  %0 = x : f32[n, 4]\n"
            "  %1 = slice{axes = [0], starts = [3], ends = [n - 1], steps = [1]}(%0) : f32[n - 4, 4]\n"
            "  return output_0 = %1\n");
}

}  // namespace
}  // namespace kiln::test

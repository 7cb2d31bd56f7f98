#include "kiln/pass/remove_identity.hpp"

#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) { return remove_identity(p); };

TEST(remove_identity, what_gives_its_operand_back) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 3});
    auto y = x | op::identity{} | op::convert{dtype::f32} | op::contiguous{} | op::concat{0};
    y = y.reshape({2, 3}).transpose({0, 1}).slice({.axes = {1}, .starts = {0}, .ends = {3}});
    y = y | op::multibroadcast{{2, 3}} | op::broadcast{0, {2, 3}} | op::reverse{} | op::pad{.pads = {0, 0, 0, 0}};
    b.output(y.neg());
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[2, 3]\n"
                      "  %1 = neg(%0) : f32[2, 3]\n"
                      "  return output_0 = %1\n",
                      run);
}

TEST(remove_identity, what_only_looks_alike_stays) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 2});
    b.output(x.transpose({1, 0}) + (x | op::reverse{{0}}) + x.convert(dtype::f16).convert(dtype::f32));
    b.output((x | op::pad{.pads = {1, 0, -1, 0}}) + x.concat(x, 0).slice({.starts = {0}, .ends = {2}}));
  };
  auto p = built<builder>(build);
  EXPECT_FALSE(remove_identity(p).changed());
  EXPECT_EQ(p.main().size(), 11u);
}

TEST(remove_identity, reductions_over_extents_of_one) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {1, 3});
    b.output(x.reduce_sum({0}).reduce_mean({0}).reduce_max({-2}).reduce_prod({0}));
    b.output(b.add(op::reduce_l2{{0}}, x));
    b.output(x.reduce_sum({}));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[1, 3]\n"
                      "  %1 = reduce_l2{axes = [0]}(%0) : f32[1, 3]\n"
                      "  %2 = reduce_sum{axes = []}(%0) : f32[1, 1]\n"
                      "  return output_0 = %0\n  return output_1 = %1\n  return output_2 = %2\n",
                      run);
}

TEST(remove_identity, extents_of_one_may_be_permuted) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {1, 1, 3});
    b.output(x.transpose({1, 0, 2}));
  };
  KILN_EXPECT_REWRITE(build, "main:\n  %0 = x : f32[1, 1, 3]\n  return output_0 = %0\n", run);
}

TEST(remove_identity, symbolic_dims) {
  builder b;
  const dimension n = dimension::symbol("n", 1, 64), m = dimension::symbol("m", 1, 64);
  auto x = b.input("x", dtype::f32, {n, 4});
  b.output(x.reshape({n, 4}));
  b.output(x.slice({.axes = {0}, .starts = {0}, .ends = {std::numeric_limits<std::int64_t>::max()}}));
  b.output(x.reshape({m, 4}));
  auto p = b.finish();
  EXPECT_EQ(remove_identity(p).counts.total(), 2u);
  EXPECT_EQ(p.main().outputs[0], p.main().outputs[1]);
}

}  // namespace
}  // namespace kiln::test

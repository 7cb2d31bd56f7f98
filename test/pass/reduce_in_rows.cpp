#include "kiln/pass/reduce_in_rows.hpp"

#include "kiln/pass/dead_code.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

template <class Build> int reductions_after(Build build) {
  program p = built<builder>(build);
  reduce_in_rows(p);
  dead_code(p);
  verify(p);
  EXPECT_TRUE(same_results(built<builder>(build), p, 0)) << print(p).view();
  int found = 0;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    found += p.main()[i].kind == instruction_kind::op && p.main()[i].op.kind() == op_kind::reduction;
  return found;
}

TEST(reduce_in_rows, extremes_of_several_dims) {
  const auto x = [](builder& b) { return b.input("x", dtype::f32, {2, 3, 4}); };
  EXPECT_EQ(reductions_after([&](builder& b) { b.output(x(b).reduce_max({0, 1, 2})); }), 2);
  EXPECT_EQ(reductions_after([&](builder& b) { b.output(x(b).reduce_min({})); }), 2);
  EXPECT_EQ(reductions_after([&](builder& b) { b.output(x(b).reduce_min({0, 2})); }), 2);
}

TEST(reduce_in_rows, what_has_one_row_or_rounds_stays) {
  EXPECT_EQ(reductions_after([](builder& b) { b.output(b.input("x", dtype::f32, {1, 3, 4}).reduce_max({0, 2})); }), 1);
  EXPECT_EQ(reductions_after([](builder& b) { b.output(b.input("x", dtype::f32, {3, 4}).reduce_max({0})); }), 1);
  EXPECT_EQ(reductions_after([](builder& b) { b.output(b.input("x", dtype::f32, {5}).reduce_max({0})); }), 1);
  EXPECT_EQ(reductions_after([](builder& b) { b.output(b.input("x", dtype::f32, {3, 4}).reduce_sum({0, 1})); }), 1);
}

TEST(reduce_in_rows, many_results_of_few_last_elements_stay) {
  const auto of = [](dims lens, ints axes) {
    return reductions_after([&](builder& b) { b.output(b.input("x", dtype::f32, lens).reduce_max(axes)); });
  };
  EXPECT_EQ(of({2, 8, 3, 4}, {2, 3}), 1);
  EXPECT_EQ(of({2, 7, 3, 4}, {2, 3}), 2);  // few results
  EXPECT_EQ(of({2, 9, 73, 77}, {2, 3}), 1);
  EXPECT_EQ(of({2, 8, 128, 128}, {2, 3}), 1);
  EXPECT_EQ(of({2, 8, 128, 129}, {2, 3}), 2);  // many elements
  EXPECT_EQ(of({2, 8, 3, 4}, {0, 3}), 2);      // dims apart
  EXPECT_EQ(of({2, 8, 3, 4}, {0, 2, 3}), 2);
}

}  // namespace
}  // namespace kiln::test

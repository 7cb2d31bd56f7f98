#include "kiln/pass/widen_floats.hpp"

#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) { return widen_floats(p); };

#define KILN_EXPECT_PRINTED(build, expected)                                   \
  static_assert(printed<static_builder<>>(build, run) == text(expected));      \
  EXPECT_EQ((printed<builder>(build, run).str()), std::string_view(expected)); \
  EXPECT_FALSE(second_run_changes(build));                                     \
  EXPECT_TRUE(same_results(built<builder>(build), widened(build), 4e-3))

template <class Build> auto widened(Build build) {
  auto p = built<builder>(build);
  run(p);
  return p;
}
template <class Build> constexpr auto widened_static(Build build) {
  auto p = built<static_builder<>>(build);
  run(p);
  return p;
}
template <class Build> bool second_run_changes(Build build) {
  auto p = widened(build);
  return run(p).changed();
}

TEST(widen_floats, conversions_stand_at_the_edges) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f16, {2, 2});
    b.output(x.dot(x).relu().transpose({1, 0}).dot(x), "y");
  };
  KILN_EXPECT_PRINTED(build,
                      "main:\n"
                      "  %0 = x : f16[2, 2]\n"
                      "  %1 = convert{to = f32}(%0) : f32[2, 2]\n"
                      "  %2 = dot(%1, %1) : f32[2, 2]\n"
                      "  %3 = relu(%2) : f32[2, 2]\n"
                      "  %4 = transpose{permutation = [1, 0]}(%3) : f32[2, 2]\n"
                      "  %5 = dot(%4, %1) : f32[2, 2]\n"
                      "  %6 = convert{to = f16}(%5) : f16[2, 2]\n"
                      "  return y = %6\n");
}

TEST(widen_floats, elements_that_only_move_stay_narrow) {
  constexpr auto build = [](auto& b) {
    auto rows = b.input("table", dtype::bf16, {4, 2}).gather(b.input("rows", dtype::i64, {2}), 0);
    b.output(rows.dot(rows.transpose({1, 0})), "y");
  };
  KILN_EXPECT_PRINTED(build,
                      "main:\n"
                      "  %0 = table : bf16[4, 2]\n"
                      "  %1 = rows : i64[2]\n"
                      "  %2 = gather{axis = 0}(%0, %1) : bf16[2, 2]\n"
                      "  %3 = convert{to = f32}(%2) : f32[2, 2]\n"
                      "  %4 = transpose{permutation = [1, 0]}(%2) : bf16[2, 2]\n"
                      "  %5 = convert{to = f32}(%4) : f32[2, 2]\n"
                      "  %6 = dot(%3, %5) : f32[2, 2]\n"
                      "  %7 = convert{to = bf16}(%6) : bf16[2, 2]\n"
                      "  return y = %7\n");
}

TEST(widen_floats, conditions_and_conversions_read_rounded_values) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f16, {2, 2});
    auto y = x.dot(x);
    b.output(y > x, "more");
    b.output(y.convert(dtype::i32), "whole");
  };
  KILN_EXPECT_PRINTED(build,
                      "main:\n"
                      "  %0 = x : f16[2, 2]\n"
                      "  %1 = convert{to = f32}(%0) : f32[2, 2]\n"
                      "  %2 = dot(%1, %1) : f32[2, 2]\n"
                      "  %3 = convert{to = f16}(%2) : f16[2, 2]\n"
                      "  %4 = greater(%3, %0) : bool[2, 2]\n"
                      "  %5 = convert{to = i32}(%3) : i32[2, 2]\n"
                      "  return more = %4\n"
                      "  return whole = %5\n");
}

template <class Program> constexpr int conversions(const Program& p) {
  int n = 0;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    n += p.main()[i].kind == instruction_kind::op && p.main()[i].op.template is<op::convert>();
  return n;
}

// As batch norm of a network of halves is imported: in f32, between conversions.
TEST(widen_floats, passages_through_f32_do_not_round) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f16, {2, 2});
    auto shift = b.input("shift", dtype::f32, {2, 2});
    b.output((x.dot(x).convert(dtype::f32) + shift).convert(dtype::f16).relu().dot(x), "y");
  };
  static_assert(conversions(widened_static(build)) == 2);  // of x and of y
  EXPECT_EQ(conversions(widened(build)), 2);
  EXPECT_FALSE(second_run_changes(build));
  EXPECT_TRUE(same_results(built<builder>(build), widened(build), 4e-3));
}

TEST(widen_floats, what_comes_in_and_what_is_returned_rounds) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f16, {2, 2});
    auto in = b.input("in", dtype::f32, {2, 2});
    b.output(in.convert(dtype::f16).convert(dtype::f32), "in_halves");
    b.output(x.dot(x).convert(dtype::f32), "y");
  };
  EXPECT_EQ(conversions(widened(build)), 5);
  EXPECT_FALSE(second_run_changes(build));
  EXPECT_TRUE(same_results(built<builder>(build), widened(build), 4e-3));
}

TEST(widen_floats, programs_without_products_keep_their_roundings) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f16, {2, 2});
    b.output((x + x).relu().reduce_sum({1}), "y");
  };
  auto p = built<builder>(build);
  EXPECT_FALSE(run(p).changed());
}

}  // namespace
}  // namespace kiln::test

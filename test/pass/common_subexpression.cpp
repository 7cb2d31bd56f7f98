#include "kiln/pass/common_subexpression.hpp"

#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) { return common_subexpression(p); };

TEST(common_subexpression, equal_computations_happen_once) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2}), y = b.input("y", dtype::f32, {2});
    b.output((x.exp() - y) * (x.exp() - y));
    b.output(x.elu({.alpha = 2}) + x.elu({.alpha = 3}));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[2]\n"
                      "  %1 = y : f32[2]\n"
                      "  %2 = exp(%0) : f32[2]\n"
                      "  %3 = sub(%2, %1) : f32[2]\n"
                      "  %4 = mul(%3, %3) : f32[2]\n"
                      "  %5 = elu{alpha = 2}(%0) : f32[2]\n"
                      "  %6 = elu{alpha = 3}(%0) : f32[2]\n"
                      "  %7 = add(%5, %6) : f32[2]\n"
                      "  return output_0 = %4\n  return output_1 = %7\n",
                      run);
}

TEST(common_subexpression, operands_of_a_commutative_op_have_no_order) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2}), y = b.input("y", dtype::f32, {2});
    const auto sum = x + y, swapped_sum = y + x, difference = x - y, swapped = y - x;
    b.output(sum * swapped_sum);
    b.output(difference * swapped);
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[2]\n"
                      "  %1 = y : f32[2]\n"
                      "  %2 = add(%0, %1) : f32[2]\n"
                      "  %3 = mul(%2, %2) : f32[2]\n"
                      "  %4 = sub(%0, %1) : f32[2]\n"
                      "  %5 = sub(%1, %0) : f32[2]\n"
                      "  %6 = mul(%4, %5) : f32[2]\n"
                      "  return output_0 = %3\n  return output_1 = %6\n",
                      run);
}

TEST(common_subexpression, constants_are_told_apart_by_type_dims_and_bits) {
  constexpr auto build = [](auto& b) {
    b.output(b.scalar(dtype::f32, 1));
    b.output(b.scalar(dtype::f32, 1));
    b.output(b.scalar(dtype::f64, 1));
    b.output(b.scalar(dtype::f32, 0.0));
    b.output(b.scalar(dtype::f32, -0.0));
    const float one[] = {1};
    b.output(b.template constant<float>(dtype::f32, {1}, one));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = literal f32[] {1}\n"
                      "  %1 = literal f64[] {1}\n"
                      "  %2 = literal f32[] {0}\n"
                      "  %3 = literal f32[] {-0}\n"
                      "  %4 = literal f32[1] {1}\n"
                      "  return output_0 = %0\n  return output_1 = %0\n  return output_2 = %1\n"
                      "  return output_3 = %2\n  return output_4 = %3\n  return output_5 = %4\n",
                      run);
}

TEST(common_subexpression, large_constants_merge_only_when_they_share_data) {
  builder b;
  small_vector<float> values(10000, 1.0f);
  const literal one = literal::of<float>({dtype::f32, {10000}}, values);
  const auto a = b.constant(one), again = b.constant(one),
             copy = b.constant(literal::of<float>({dtype::f32, {10000}}, values));
  b.output(a + again);
  b.output(a + copy);
  auto p = b.finish();
  EXPECT_EQ(common_subexpression(p).counts.total(), 1u);
}

TEST(common_subexpression, every_result_of_a_repeated_op_is_redirected) {
  builder b;
  auto x = b.input("x", dtype::f32, {4});
  auto one = b.add(op::topk{.k = 2}, x), two = b.add(op::topk{.k = 2}, x);
  b.output(one.result(0) + two.result(0));
  b.output(two.result(1));
  auto p = b.finish();
  const auto before = p;
  EXPECT_EQ(common_subexpression(p).counts.total(), 1u);
  EXPECT_TRUE(find_faults(p).empty());
  EXPECT_EQ(p.main().outputs[1].result, 1u);
  EXPECT_TRUE(same_results(before, p, 0));
}

// An op without memory of what it gave: a random number is another one each time.
struct impure {
  static constexpr bool pure = false;
  template <class T> constexpr T operator()(T x) const { return x; }
};

TEST(common_subexpression, impure_ops_are_left_alone) {
  builder b;
  auto x = b.input("x", dtype::f32, {4});
  b.output((x | impure{}) + (x | impure{}));
  auto p = b.finish();
  EXPECT_FALSE(common_subexpression(p).changed());
}

TEST(common_subexpression, a_long_chain_is_linear) {
  builder b;
  auto x = b.input("x", dtype::f32, {1});
  auto y = x;
  for (int i = 0; i < 4000; ++i) y = y + x.exp();
  b.output(y);
  auto p = b.finish();
  EXPECT_EQ(common_subexpression(p).counts.total(), 3999u);
}

}  // namespace
}  // namespace kiln::test

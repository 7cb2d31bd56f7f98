#include "kiln/graph/print.hpp"
#include "kiln/pass/passes.hpp"
#include "static_program/equal.hpp"

namespace user {

/// A user's own op, unknown to the library.
struct leaky {
  float slope = 0.01f;
  template <class T> constexpr T operator()(T x) const {
    return kiln::select(x > kiln::splat<T>(0), x, kiln::splat<T>(slope) * x);
  }
};

}  // namespace user

namespace kiln::test {
namespace {

constexpr auto with_user_op = [](auto& b) {
  auto x = b.input("x", dtype::f32, {4, 19});
  b.output((x.dot(b.weight("w", dtype::f32, {19, 12})) | user::leaky{.slope = 0.3f}) + 1.0);
};
using user_registry = default_registry::extend<user::leaky>;
TEST(static_other, a_users_op_fuses) {
  expect_equal<with_user_op, user_registry>(1);
  static_assert(static_program<with_user_op, user_registry>::kernels == 1);
}

// What kiln's own ops get, a user's op gets from its text: no line of it is written for that.
constexpr float signs[] = {-2, 3, -4, 0.5f};
constexpr bool folds_while_compiling() {
  static_builder<user_registry> b;
  b.output(b.constant(dtype::f32, {4}, std::span<const float>(signs)) | user::leaky{.slope = 0.5f});
  auto p = b.finish();
  optimize_graph(p);
  const auto& made = p.main().producer(p.main().outputs[0]);
  if (made.kind != instruction_kind::literal) return false;
  const auto values = made.constant.to<float>();
  return values[0] == -1 && values[1] == 3 && values[2] == -2 && values[3] == 0.5f;
}
static_assert(folds_while_compiling());

constexpr auto equal_user_ops = [](auto& b) {
  auto x = b.input("x", dtype::f32, {8});
  auto y = x | user::leaky{.slope = 0.5f};
  b.output(y * (x | user::leaky{.slope = 0.5f}) + (x | user::leaky{.slope = 0.25f}));
};
constexpr std::size_t user_ops_left() {
  static_builder<user_registry> b;
  equal_user_ops(b);
  auto p = b.finish();
  common_subexpression(p);
  std::size_t n = 0;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    n += p.main()[i].kind == instruction_kind::op && p.main()[i].op.template is<user::leaky>();
  return n;
}
static_assert(user_ops_left() == 2);

TEST(static_other, a_users_op_compares_hashes_and_prints) {
  const operation half = user::leaky{.slope = 0.5f}, same = user::leaky{.slope = 0.5f}, other = user::leaky{};
  EXPECT_TRUE(half == same && half.hash() == same.hash());
  EXPECT_FALSE(half == other);
  EXPECT_NE(half.hash(), other.hash());
  builder b;
  equal_user_ops(b);
  program p = b.finish();
  const std::string before = print(p).str();
  EXPECT_NE(before.find("leaky"), std::string::npos) << before;
  EXPECT_NE(before.find("slope = 0.25"), std::string::npos) << before;
  common_subexpression(p);
  EXPECT_EQ(p.main().size(), 5u) << print(p).str();
}

constexpr auto views = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 3, 4, 5});
  auto y = x.transpose({0, 2, 1, 3}).slice({.axes = {1, 3}, .starts = {1, 0}, .ends = {4, 4}});
  b.output(y.exp());
  b.output(y.reshape({6, 12}));
  b.output(y.transpose({3, 1, 0, 2}).unsqueeze({0}) * x.slice({.axes = {3}, .starts = {2}, .ends = {3}})
                                                          .reshape({6, 4})
                                                          .slice({.axes = {0}, .starts = {0}, .ends = {3}})
                                                          .reshape({12})
                                                          .slice({.axes = {0}, .starts = {3}, .ends = {6}}));
  b.output(x | op::reverse{{1, 3}});
};
TEST(static_other, view_chains_become_layouts) { expect_equal<views>(2); }

constexpr auto lookup = [](auto& b) {
  auto table = b.weight("table", dtype::f32, {7, 6});
  auto x = table.gather(b.input("ids", dtype::i64, {2, 3}));
  b.output(x.normalize({-1}));
  b.output(table.gather(b.input("columns", dtype::i32, {4}), 1));
};
TEST(static_other, gather) { expect_equal<lookup>(3); }

constexpr auto attends = [](auto& b) {
  auto q = b.input("q", dtype::f32, {1, 4, 5, 24}), k = b.input("k", dtype::f32, {1, 2, 7, 24}),
       v = b.input("v", dtype::f32, {1, 2, 7, 10});
  b.output(q.attention(k, v, op::attention{.scale = 0.3f, .causal = true}));
  b.output(q.attention(k, v, b.input("mask", dtype::f32, {1, 1, 5, 7}), op::attention{.scale = 0.2f}));
};
TEST(static_other, attention) { expect_equal<attends>(4); }

constexpr auto attends_in_blocks = [](auto& b) {
  const auto k = b.input("k", dtype::f32, {2, 2, 19, 16}), v = b.input("v", dtype::f32, {2, 2, 19, 18});
  const auto many = b.input("many", dtype::f32, {2, 4, 18, 16}), one = b.input("one", dtype::f32, {2, 4, 1, 16});
  b.output(many.attention(k, v, op::attention{.scale = 0.3f, .causal = true}));
  b.output(one.attention(k, v, b.input("mask", dtype::f32, {2, 1, 1, 19}), op::attention{.scale = 0.2f}));
};
TEST(static_other, attention_of_many_queries_and_of_one) { expect_equal<attends_in_blocks>(6); }

constexpr auto spelt_attention = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 6, 16});
  const auto heads = [&](std::string_view name) {
    return x.dot(b.weight(name, dtype::f32, {16, 16})).reshape({1, 6, 2, 8}).transpose({0, 2, 1, 3});
  };
  auto q = heads("q"), k = heads("k"), v = heads("v");
  auto y = (q.dot(k.transpose({0, 1, 3, 2})) * 0.35).softmax().dot(v);
  b.output(y.transpose({0, 2, 1, 3}).reshape({1, 6, 16}).dot(b.weight("o", dtype::f32, {16, 16})) + x);
};
TEST(static_other, a_transformer_block) { expect_equal<spelt_attention>(5, 2e-6); }

constexpr float table_values[] = {1, -2, 3, 0.5f, 0.25f, 7, -1, 9};
constexpr auto embedded = [](auto& b) {
  auto c = b.constant(dtype::f32, {2, 4}, std::span<const float>(table_values));
  auto x = b.input("x", dtype::f32, {3, 2});
  b.output(x.dot(c) + c.reduce_sum({0}));
  b.output(c);
  b.output(x);
};
TEST(static_other, constants_are_embedded_and_an_input_may_be_an_output) { expect_equal<embedded>(6); }

constexpr auto scalars = [](auto& b) {
  auto x = b.input("x", dtype::f32, {}), y = b.input("y", dtype::f32, {0, 3});
  b.output(x * x + 1.0);
  b.output(y.exp());
  b.output(y.reduce_sum({0}));
};
TEST(static_other, rank_zero_and_empty_extents) { expect_equal<scalars>(7); }

TEST(static_other, names_are_known_to_the_compiler) {
  using program = static_program<lookup>;
  static_assert(program::input("columns") == 1 && program::weight("table") == 0 && program::output("output_1") == 1);
  static_assert(program::weight_elements == 42 && program::outputs == 2);
}

}  // namespace
}  // namespace kiln::test

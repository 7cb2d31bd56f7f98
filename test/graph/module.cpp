#include "kiln/graph/module.hpp"

#include <gtest/gtest.h>

#include "kiln/graph/builder.hpp"
#include "kiln/graph/verify.hpp"
#include "kiln/op/dynamic/selection.hpp"

namespace kiln {
namespace {

constexpr auto diamond = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2});
  auto dead = x.exp();
  auto left = x.neg(), right = x.abs();
  dead.log();
  b.input("late", dtype::f32, {1});
  b.output(right + left);
};

static_assert([] {
  static_builder<> b;
  diamond(b);
  auto p = b.finish();
  p.main().compact();
  return p.main().size() == 5 && find_faults(p).empty();
}());

TEST(module, compaction_keeps_parameters_and_orders_the_rest) {
  builder b;
  diamond(b);
  program p = b.finish();
  ASSERT_EQ(p.main().size(), 7u);
  p.main().compact();
  ASSERT_EQ(p.main().size(), 5u);
  EXPECT_EQ(p.main()[0].name.view(), "x");
  EXPECT_EQ(p.main()[1].name.view(), "late");
  EXPECT_EQ(p.main()[2].op.name(), "abs");  // depth first from the output
  EXPECT_EQ(p.main()[3].op.name(), "neg");
  EXPECT_TRUE(find_faults(p).empty());
}

TEST(module, a_chain_deeper_than_the_stack_is_ordered) {
  builder b;
  auto x = b.input("x", dtype::f32, {1});
  for (int i = 0; i < 200000; ++i) x = -x;
  b.output(x);
  EXPECT_EQ(b.module().order().size(), 200001u);
}

TEST(module, a_broken_shape_rule_throws_with_its_place) {
  builder b;
  b.label = "layer1";
  auto x = b.input("x", dtype::f32, {2, 3}), y = b.input("y", dtype::f32, {4, 5});
  try {
    x.dot(y);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.op(), "dot");
    EXPECT_EQ(e.instruction(), "layer1");
    EXPECT_EQ(e.code(), errc::shape_mismatch);
  }
}

// What binds a symbol stands before what mentions it: in its dims, in an attribute, in numbers; also where an
// instruction that binds another one does, and where a parameter already says what the symbol is.
TEST(module, binders_stand_before_their_readers) {
  const dimension n = dimension::symbol("order.n"), k = dimension::symbol("order.k");
  builder b;
  const value x = b.input("x", dtype::f32, {4}), given = b.input("given", dtype::f32, {k});
  module_graph& m = b.module();
  const auto put = [&](const operation& op, small_vector<value_id> in, shapes out) {
    return m.add_with_shapes(op, std::move(in), std::move(out));
  };
  const value_id filled = put(op::fill{{n}, 1, dtype::f32}, {}, {{dtype::f32, {n}}});
  const value_id cut = put(op::slice{{0}, {n - n / 2}, {4}, {}}, {x.id()}, {{dtype::f32, {2}}});
  const value_id numbers = b.constant(literal::of_dimensions({1}, {n + 1}, dtype::i64)).id();
  const value_id later = put(op::nonzero{dimension::symbol("order.later")}, {filled},
                             {{dtype::i64, {1, dimension::symbol("order.later")}}});
  const value_id binder = put(op::nonzero{n}, {given.id()}, {{dtype::i64, {1, n}}});
  // says nothing of k, which its own operand and a parameter mention
  const value_id read = put(op::fill{{k}, 1, dtype::f32}, {}, {{dtype::f32, {k}}});
  for (const value_id v : {read, cut, numbers, later}) m.outputs.push_back(v), m.output_names.push_back(text("y"));
  const auto order = m.order();
  const auto at = [&](value_id v) { return std::find(order.begin(), order.end(), v.instruction) - order.begin(); };
  EXPECT_EQ(order.size(), m.size());
  for (const value_id v : {filled, cut, numbers, later}) EXPECT_LT(at(binder), at(v));
  EXPECT_LT(at(filled), at(later));
  m.compact();
  for (const value_id v : m.outputs) EXPECT_LT(v.instruction, m.size());
}

static_assert([] {
  static_builder<> b;
  auto x = b.input("x", dtype::f32, {2, 3}), y = b.input("y", dtype::f32, {4, 5});
  b.output(x.dot(y).relu());
  const auto p = b.finish();
  return p.main().faulty && p.main().first_fault_op == text("dot");
}());

TEST(module, programs_are_values) {
  builder b;
  diamond(b);
  const program p = b.finish();
  program copy = p;
  copy.main().compact();
  EXPECT_EQ(p.main().size(), 7u);
  EXPECT_TRUE(p.main().find_parameter("late"));
  EXPECT_FALSE(p.main().find_parameter("other"));
}

}  // namespace
}  // namespace kiln

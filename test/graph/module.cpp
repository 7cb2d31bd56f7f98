#include "kiln/graph/module.hpp"

#include <gtest/gtest.h>

#include "kiln/graph/builder.hpp"
#include "kiln/graph/verify.hpp"

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

#include "kiln/graph/add_body.hpp"

#include <gmock/gmock.h>

#include "kiln/graph/builder.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/graph/verify.hpp"
#include "kiln/op/dynamic/branch.hpp"

namespace kiln {
namespace {

TEST(add_body, moves_bodies_along_and_orders_parameters) {
  // a body that itself runs one of two bodies, its parameters in another order than its caller's operands
  builder inner;
  const value a = inner.input("a", dtype::f32, {2}), c = inner.input("c", dtype::boolean, {});
  builder leaf;
  leaf.output(leaf.input("z", dtype::f32, {2}).neg());
  const value_id z = leaf.module().parameters()[0];
  const program negation = leaf.finish();
  op::branch choice;
  choice.then_inputs = 1;
  choice.then_body = add_body(inner.get_program(), negation, {&z, 1});
  choice.else_body = choice.then_body;
  const small_vector<value_id> operands{c.id(), a.id(), a.id()};
  inner.output(inner.wrap(inner.module().add_with_shapes(choice, operands, {shape{dtype::f32, {2}}})));

  builder outer;
  outer.output(outer.input("x", dtype::f32, {2}));
  program whole = outer.finish();
  whole.add_module({});
  const value_id order[] = {c.id(), a.id()};
  const module_ref at = add_body(whole, inner.finish(), order);
  EXPECT_EQ(at.index, 2u);
  const module_graph& m = whole.module(at);
  EXPECT_EQ(m[0].name.view(), "c");
  EXPECT_EQ(m[1].name.view(), "a");
  ASSERT_EQ(m.size(), 3u);
  const auto* const moved = m[2].op.get_if<op::branch>();
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->then_body.index, 3u);
  EXPECT_TRUE(whole.module(moved->then_body)[1].op.is<op::neg>());
}

}  // namespace
}  // namespace kiln

#include "kiln/graph/builder.hpp"

#include <gtest/gtest.h>

#include "kiln/graph/print.hpp"
#include "kiln/graph/verify.hpp"

namespace kiln {
namespace {

template <class Builder> constexpr text mlp() {
  Builder b;
  auto x = b.input("x", dtype::f32, {4, 8});
  auto y = (x.dot(b.weight("w", dtype::f32, {8, 2})) + b.weight("b", dtype::f32, {2})).relu();
  b.output((y | op::leaky_relu{.alpha = 0.5f}) * 2, "y");
  return print(b.finish());
}

TEST(builder, operands_are_broadcast_and_methods_are_ops) {
  // operands of + may be evaluated in either order
  const std::string text_of = mlp<builder>().str();
  EXPECT_NE(text_of.find("dot("), std::string::npos);
  EXPECT_NE(text_of.find("multibroadcast{to = [4, 2]}"), std::string::npos);
  EXPECT_NE(text_of.find("leaky_relu{alpha = 0.5}"), std::string::npos);
  EXPECT_NE(text_of.find("return y ="), std::string::npos);
  static_assert(!mlp<static_builder<>>().empty());
}

TEST(builder, a_constant_has_a_value_for_each_element) {
  builder b;
  const float three[] = {1, 2, 3};
  try {
    b.constant(dtype::f32, {2, 2}, std::span<const float>(three));
    FAIL() << "four elements from three values";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::shape_mismatch);
    EXPECT_EQ(e.expected(), "4");
    EXPECT_EQ(e.found(), "3");
  }
  EXPECT_EQ(b.constant(dtype::f32, {3}, std::span<const float>(three)).get_shape().lens, dims{3});
}

TEST(builder, dot_broadcasts_leading_dims) {
  builder b;
  auto q = b.input("q", dtype::f32, {2, 3, 4, 5}), k = b.input("k", dtype::f32, {3, 5, 6});
  EXPECT_EQ(to_string(q.dot(k).get_shape()), "f32[2, 3, 4, 6]");
  EXPECT_EQ(to_string(k.dot(b.input("v", dtype::f32, {6, 1})).get_shape()), "f32[3, 5, 1]");
}

TEST(builder, layers_have_the_shapes_of_their_input) {
  builder b;
  auto x = b.input("x", dtype::f32, {2, 3, 4});
  for (value v : {x.softmax(), x.softmax(1), x.log_softmax(), x.normalize({-1}), x.rms_normalize(), x.silu()})
    EXPECT_EQ(v.get_shape(), x.get_shape());
  auto c = b.input("c", dtype::f32, {3});
  EXPECT_EQ(x.batch_norm(c, c, c, c).get_shape(), x.get_shape());
  EXPECT_TRUE(find_faults(b.get_program()).empty());
}

TEST(builder, shape_arithmetic_folds_while_building) {
  builder b;
  b.fold_constants = true;
  const dimension n = dimension::symbol("n", 1, 9);
  small_vector<dimension> list{n, 4};
  auto s = b.constant(literal::of_dimensions({2}, list));
  auto t = (s * 2).concat(s, 0).slice({.starts = {1}, .ends = {3}});
  const auto& made = b.module().producer(t.id());
  ASSERT_EQ(made.kind, instruction_kind::literal);
  EXPECT_EQ(made.constant.to<dimension>(), (small_vector<dimension>{8, n}));
}

TEST(builder, symbolic_dims_that_may_differ_are_kept_apart) {
  builder b;
  const dimension n = dimension::symbol("n", 1, 9), m = dimension::symbol("m", 1, 9);
  auto x = b.input("x", dtype::f32, {n, 4});
  EXPECT_EQ((x + b.input("one", dtype::f32, {1, 4})).get_shape().lens, (dims{n, 4}));
  EXPECT_EQ((x + b.input("same", dtype::f32, {n, 1})).get_shape().lens, (dims{n, 4}));
  EXPECT_EQ((x + b.input("other", dtype::f32, {m, 4})).get_shape().lens, (dims{n, 4}));
}

TEST(builder, different_dtypes_do_not_mix) {
  builder b;
  auto x = b.input("x", dtype::f32, {2}), y = b.input("y", dtype::f16, {2});
  EXPECT_THROW(x + y, error);
  EXPECT_THROW(x.exp().where(x, x), error);
  EXPECT_THROW(b.input("i", dtype::i32, {2}).exp(), error);
}

}  // namespace
}  // namespace kiln

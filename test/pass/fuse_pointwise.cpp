#include "kiln/pass/fuse_pointwise.hpp"

#include <gtest/gtest.h>

#include "pass/fusion_models.hpp"

namespace kiln::test {
namespace {

constexpr auto fuse = [](graph& p) { fuse_pointwise(p); };

constexpr auto chain = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 8}), y = b.input("y", dtype::f32, {8});
  b.output(((x + y) * 2.0f).relu() + x);
};
static_assert(kernel_count(after(chain, fuse)) == 1);

// the scalar stands in the body, the vector stays a view outside, x is one parameter
constexpr std::string_view chain_text = R"(main:
  %0 = x : f32[4, 8]
  %1 = y : f32[8]
  %2 = multibroadcast{to = [4, 8]}(%1) : f32[4, 8]
  %3 = fused{kind = pointwise, body = @1}(%0, %2) : f32[4, 8]
  return output_0 = %3
add_mul_relu_add @1:
  %0 = p0 : f32[4, 8]
  %1 = p1 : f32[4, 8]
  %2 = add(%0, %1) : f32[4, 8]
  %3 = literal f32[] {2}
  %4 = multibroadcast{to = [4, 8]}(%3) : f32[4, 8]
  %5 = mul(%2, %4) : f32[4, 8]
  %6 = relu(%5) : f32[4, 8]
  %7 = add(%6, %0) : f32[4, 8]
  return r0 = %7
)";
static_assert(print(after(chain, fuse)).view() == chain_text);

constexpr auto lone = [](graph_builder& b) { b.output(b.input("x", dtype::f32, {3}).relu()); };
static_assert(fused_count(after(lone, fuse), fusion::pointwise) == 1);

constexpr auto scalars = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {});
  b.output((x + 1.0f) * 2.0f);
};
static_assert(kernel_count(after(scalars, fuse)) == 1);

// a value that is also read outside becomes a second result
constexpr auto two_results = [](graph_builder& b) {
  const node s = b.input("x", dtype::f32, {4}) + 1.0f;
  b.output(s.relu());
  b.output(s);
};
static_assert(kernel_count(after(two_results, fuse)) == 1);

// x + 1 -> running sum -> product with x + 1: the sum lies on a path that leaves the pair and comes back
constexpr auto around = [](graph_builder& b) {
  const node a = b.input("x", dtype::f32, {4}).relu();
  b.output(a * b.add(op::cumsum{}, a));
};
static_assert(kernel_count(after(around, fuse)) == 3);

// the same through another group: each pair alone could be joined, both together would depend on each other
constexpr auto crossed = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 4}), y = b.input("y", dtype::f32, {4});
  const node a = x.relu(), c = y.relu();
  const node d = c + a.reduce_sum({0}).reshape({4});
  const node e = a + c.reduce_sum({0}).broadcast_to({4, 4});
  b.output(d);
  b.output(e);
};
static_assert(find_faults(after(crossed, fuse)).empty());

constexpr auto rotary = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 4, 3, 8});
  const node c = b.input("c", dtype::f32, {2, 1, 3, 4}).broadcast_to({2, 4, 3, 4}),
             s = b.input("s", dtype::f32, {2, 1, 3, 4}).broadcast_to({2, 4, 3, 4});
  const node l = x.slice({{3}, {0}, {4}, {1}}), r = x.slice({{3}, {4}, {8}, {1}});
  b.output((l * c - r * s).concat(r * c + l * s, 3));
};
static_assert(kernel_count(after(rotary, fuse)) == 2);

constexpr auto mixed_types = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {5}), y = b.input("y", dtype::f32, {5});
  b.output((x < y).where(x.convert(dtype::f64), y.convert(dtype::f64) * 2.0));
};
static_assert(kernel_count(after(mixed_types, fuse)) == 1);

// different dims stay apart
constexpr auto apart = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 1}).relu();
  b.output(x.broadcast_to({4, 8}).relu());
};
static_assert(kernel_count(after(apart, fuse)) == 2);

// a longer chain than a group may have is split
constexpr auto endless = [](graph_builder& b) {
  node x = b.input("x", dtype::f32, {2});
  for (int i = 0; i < 120; ++i) x = x.relu();
  b.output(x);
};

TEST(fuse_pointwise, keeps_the_meaning) {
  const auto check = [](auto build) {
    const graph p = after(build, fuse);
    EXPECT_TRUE(find_faults(p).empty()) << print(p).view();
    EXPECT_EQ(difference(made_by(build), p), 0) << print(p).view();
  };
  check(chain);
  check(lone);
  check(scalars);
  check(two_results);
  check(around);
  check(crossed);
  check(rotary);
  check(mixed_types);
  check(apart);
  check(endless);
}

TEST(fuse_pointwise, bodies_have_a_limit) { EXPECT_EQ(kernel_count(after(endless, fuse)), 2u); }

TEST(fuse_pointwise, says_what_it_did) {
  graph p = made_by(rotary);
  const pass_note note = fuse_pointwise(p);
  EXPECT_EQ(note.pass, "fuse_pointwise");
  EXPECT_EQ(note.counts.total(), 2u);  // one pair of siblings, one group
}

TEST(fuse_pointwise, leaves_fused_bodies_alone) {
  graph p = after(chain, fuse);
  const text before = print(p);
  fuse_pointwise(p);
  EXPECT_EQ(print(p).view(), before.view());
}

}  // namespace
}  // namespace kiln::test

#include "kiln/pass/halve_rotations.hpp"

#include <gtest/gtest.h>

#include "kiln/pass/common_subexpression.hpp"
#include "kiln/pass/fuse_pointwise.hpp"
#include "kiln/pass/normalize.hpp"
#include "pass/fusion_models.hpp"
#include "pass/rotary_row.hpp"

namespace kiln::test {
namespace {

constexpr auto halve = [](graph& p) { halve_rotations(p); };

// x * cos + rotate_half(x) * sin; the cosines are computed from angles that nothing else reads
constexpr auto rotary = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 3, 8}), cos = b.input("cos", dtype::f32, {2, 3, 8}).exp();
  const node turned = (-last_axis(x, 4, 8)).concat(last_axis(x, 0, 4), 2);
  b.output(x * cos + turned * b.input("sin", dtype::f32, {3, 8}));
};

// three parts that move on by one
constexpr auto three_at_once = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 6});
  const small_vector<node> parts{last_axis(x, 4, 6), last_axis(x, 0, 2), last_axis(x, 2, 4)};
  b.output(b.add(op::concat{1}, parts) * 2.0f);
};

// parts in their own order, of two values, on another axis, of different lengths, twice the same, and what no pointwise
// op reads or two places read
constexpr auto in_order = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 8});
  b.output((-last_axis(x, 0, 4)).concat(last_axis(x, 4, 8), 1).exp());
};
constexpr auto of_two = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 8}), y = b.input("y", dtype::f32, {2, 8});
  b.output(last_axis(x, 4, 8).concat(last_axis(y, 0, 4), 1).exp());
};
constexpr auto other_axis = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 8}).transpose({1, 0});
  b.output(x.slice({.axes = {0}, .starts = {4}, .ends = {8}})
               .concat(x.slice({.axes = {0}, .starts = {0}, .ends = {4}}), 0)
               .exp());
};
constexpr auto unequal = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 8});
  b.output(last_axis(x, 3, 8).concat(last_axis(x, 0, 3), 1).exp());
};
constexpr auto twice = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 8});
  b.output(last_axis(x, 4, 8).concat(last_axis(x, 4, 8), 1).exp());
};
constexpr auto unread = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 8});
  b.output(last_axis(x, 4, 8).concat(last_axis(x, 0, 4), 1));
};
constexpr auto read_twice = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 8}), turned = last_axis(x, 4, 8).concat(last_axis(x, 0, 4), 1);
  b.output(turned.exp());
  b.output(turned);
};
template <class Build> constexpr bool changes(Build build) {
  graph p = made_by(build);
  return halve_rotations(p).changed();
}
static_assert(changes(rotary) && changes(three_at_once) && !changes(in_order));
static_assert(!changes(of_two) && !changes(other_axis) && !changes(unequal) && !changes(twice));
static_assert(!changes(unread) && !changes(read_twice));

// no rotated copy is left: one group that writes both halves
constexpr auto fused = [](graph& p) {
  normalize(p);
  halve_rotations(p);
  common_subexpression(p);
  fuse_pointwise(p);
};
static_assert(fused_count(after(rotary, fused), fusion::pointwise) == 1);
static_assert(kernel_count(after(rotary, fused)) == 2);  // and the concatenation, which is written in place

TEST(halve_rotations, keeps_the_meaning) {
  const auto check = [](auto build) {
    const graph p = after(build, halve);
    EXPECT_TRUE(find_faults(p).empty()) << print(p).view();
    EXPECT_EQ(difference(made_by(build), p), 0) << print(p).view();
  };
  check(rotary);
  check(three_at_once);
  check(in_order);
  check(read_twice);
}

TEST(halve_rotations, counts_rotations) {
  graph p = made_by(rotary);
  EXPECT_EQ(halve_rotations(p).counts.total(), 1u);
  EXPECT_FALSE(halve_rotations(p).changed());
}

}  // namespace
}  // namespace kiln::test

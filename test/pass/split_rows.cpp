#include "kiln/pass/split_rows.hpp"

#include <gtest/gtest.h>

#include "kiln/pass/common_subexpression.hpp"
#include "kiln/pass/fuse_pointwise.hpp"
#include "kiln/pass/fuse_reduce.hpp"
#include "pass/fusion_models.hpp"
#include "pass/rotary_row.hpp"

namespace kiln::test {
namespace {

constexpr auto split = [](graph& p) { split_rows(p); };
constexpr auto fuse = [](graph& p) {
  split_rows(p);
  common_subexpression(p);
  fuse_reduce(p);
  fuse_pointwise(p);
};
constexpr auto fuse_unsplit = [](graph& p) {
  fuse_reduce(p);
  fuse_pointwise(p);
};

// [rotary]
constexpr auto rotary = [](graph_builder& b) { rms_norm_and_rotary(b); };
static_assert(kernel_count(after(rotary, fuse)) == 1);
static_assert(kernel_count(after(rotary, fuse_unsplit)) == 2);  // the row, then the embedding
// [/rotary]

// heads that are rows of a matrix first, and a mean beside the mean of squares
constexpr auto renamed = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {15, 8});
  const node d = x - x.reduce_mean({1});
  const node n = d * ((d * d).reduce_mean({-1}) + 1e-5f).rsqrt() * b.input("w", dtype::f32, {8}) +
                 b.input("bias", dtype::f32, {1, 8});
  const node heads = n.reshape({3, 5, 8}).transpose({1, 0, 2}).reshape({5, 3, 4, 2});
  const node turned = b.add(op::reverse{{-1}}, heads);
  b.output(heads * 0.5f - turned * b.input("sin", dtype::f32, {3, 4, 1}));
};
static_assert(kernel_count(after(renamed, fuse)) == 1);

// one row alone, whose mean is one element
constexpr auto one_row = [](graph_builder& b) {
  const node halves = b.input("x", dtype::f32, {1, 1, 8}).rms_normalize().reshape({1, 1, 2, 4});
  b.output(halves + b.add(op::reverse{{2}}, halves));
};
static_assert(kernel_count(after(one_row, fuse)) == 1);

// a sum over another axis of one row's extents is read as it is
constexpr auto summed_before = [](graph_builder& b) {
  const node halves =
      b.add(op::reduce_sum{{0}}, b.input("x", dtype::f32, {3, 5, 8})).rms_normalize().reshape({1, 5, 2, 4});
  b.output(halves + b.add(op::reverse{{2}}, halves));
};
static_assert(!after(summed_before, split).main().faulty);

// what else reads the row still finds it
constexpr auto read_elsewhere = [](graph_builder& b) {
  const node n = b.input("x", dtype::f32, {3, 8}).rms_normalize();
  const node halves = n.reshape({3, 2, 4});
  b.output(halves + b.add(op::reverse{{1}}, halves));
  b.output(n);
};

// rows that no reduction decides, other axes than the row's, and views that only an output reads stay as they are
constexpr auto no_reduction = [](graph_builder& b) {
  const node halves = b.input("x", dtype::f32, {3, 8}).exp().reshape({3, 2, 4});
  b.output(halves + b.add(op::reverse{{1}}, halves));
};
constexpr auto other_axis = [](graph_builder& b) {
  const node n = b.input("x", dtype::f32, {3, 8}).softmax(0).reshape({3, 2, 4});
  b.output(n + b.add(op::reverse{{1}}, n));
};
constexpr auto rows_reversed = [](graph_builder& b) {
  const node n = b.input("x", dtype::f32, {3, 8}).rms_normalize().reshape({3, 2, 4});
  b.output(b.add(op::reverse{{0}}, n).exp());
};
constexpr auto unread = [](graph_builder& b) {
  b.output(b.input("x", dtype::f32, {3, 8}).rms_normalize().reshape({3, 2, 4}));
};
template <class Build> constexpr bool changes(Build build) {
  graph p = made_by(build);
  return split_rows(p).changed();
}
static_assert(changes(read_elsewhere) && changes(rotary));
static_assert(!changes(no_reduction) && !changes(other_axis) && !changes(unread));

TEST(split_rows, keeps_the_meaning) {
  const auto check = [](auto build) {
    for (const bool everything : {false, true}) {
      const graph p = everything ? after(build, fuse) : after(build, split);
      EXPECT_TRUE(find_faults(p).empty()) << print(p).view();
      EXPECT_LE(difference(made_by(build), p), 1e-6) << print(p).view();
    }
  };
  check(rotary);
  check(renamed);
  check(one_row);
  check(summed_before);
  check(read_elsewhere);
  check(no_reduction);
  check(other_axis);
  check(rows_reversed);
  check(unread);
}

TEST(split_rows, counts_rows) {
  graph p = made_by(rotary);
  EXPECT_EQ(split_rows(p).counts.total(), 2u) << "the halves, and the halves exchanged";
  EXPECT_FALSE(split_rows(p).changed());
}

}  // namespace
}  // namespace kiln::test

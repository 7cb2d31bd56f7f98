#include "kiln/pass/split_rows.hpp"

#include <gtest/gtest.h>

#include "kiln/pass/common_subexpression.hpp"
#include "kiln/pass/fuse_pointwise.hpp"
#include "kiln/pass/fuse_reduce.hpp"
#include "kiln/pass/halve_rotations.hpp"
#include "pass/fusion_models.hpp"
#include "pass/rotary_row.hpp"

namespace kiln::test {
namespace {

constexpr auto split = [](graph& p) { split_rows(p); };
constexpr auto fuse_unsplit = [](graph& p) {
  fuse_reduce(p);
  fuse_pointwise(p);
};
constexpr auto fuse = [](graph& p) {
  split_rows(p);
  common_subexpression(p);
  fuse_unsplit(p);
};
constexpr auto halve_and_fuse = [](graph& p) {
  halve_rotations(p);
  common_subexpression(p);
  fuse(p);
};
// Kernels; halves are written in place, so that joining them is none.
constexpr std::uint32_t kernels(const graph& p) {
  std::uint32_t joins = 0;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    joins += p.main()[i].kind == instruction_kind::op && p.main()[i].op.is<op::concat>();
  return kernel_count(p) - joins;
}

// [rotary]
constexpr auto rotary = [](graph_builder& b) { rms_norm_and_rotary(b); };
static_assert(kernels(after(rotary, fuse)) == 1);
static_assert(kernels(after(rotary, fuse_unsplit)) == 2);  // the row, then the embedding
// [/rotary]
constexpr auto rotate_half = [](graph_builder& b) { rms_norm_and_rotate_half(b); };
static_assert(kernels(after(rotate_half, halve_and_fuse)) == 1);

// heads that are rows of a matrix first, and a mean beside the mean of squares
constexpr auto renamed = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {15, 8});
  const node d = x - x.reduce_mean({1});
  const node n = d * ((d * d).reduce_mean({-1}) + 1e-5f).rsqrt() * b.input("w", dtype::f32, {8}) +
                 b.input("bias", dtype::f32, {1, 8});
  const node heads = n.reshape({3, 5, 8}).transpose({1, 0, 2});
  b.output(last_axis(heads, 4, 8) * 0.5f - last_axis(heads, 0, 4) * b.input("sin", dtype::f32, {3, 4}));
};
static_assert(kernels(after(renamed, fuse)) == 1);

// one row alone, whose mean is one element
constexpr auto one_row = [](graph_builder& b) {
  const node n = b.input("x", dtype::f32, {1, 1, 8}).rms_normalize();
  b.output(last_axis(n, 0, 4) + last_axis(n, 4, 8));
};
static_assert(kernels(after(one_row, fuse)) == 1);

// a sum over another axis of one row's extents is read as it is
constexpr auto summed_before = [](graph_builder& b) {
  const node n = b.add(op::reduce_sum{{0}}, b.input("x", dtype::f32, {3, 5, 8})).rms_normalize();
  b.output(last_axis(n, 0, 4) + last_axis(n, 4, 8));
};
static_assert(!after(summed_before, split).main().faulty);

// probabilities of three gates, and a sum
constexpr auto thirds = [](graph_builder& b) {
  const node n = b.input("x", dtype::f32, {5, 6}).softmax();
  b.output(last_axis(n, 0, 2) * last_axis(n, 4, 6) + last_axis(n, 2, 4));
};
static_assert(kernels(after(thirds, fuse)) == 1);

// what the row is made of and something else reads is computed before, once
constexpr auto shared_operand = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {3, 8}).exp();
  const node n = x.rms_normalize();
  b.output(last_axis(n, 0, 4) * last_axis(n, 4, 8));
  b.output(x.transpose({1, 0}));
};
static_assert(kernels(after(shared_operand, fuse)) == 2);

// rows that something else reads, that no reduction decides or one over other axes, parts that are not equal, and parts
// that only an output reads stay as they are
constexpr auto read_elsewhere = [](graph_builder& b) {
  const node n = b.input("x", dtype::f32, {3, 8}).rms_normalize();
  b.output(last_axis(n, 0, 4) + last_axis(n, 4, 8));
  b.output(n);
};
constexpr auto no_reduction = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {3, 8}).exp();
  b.output(last_axis(x, 0, 4) + last_axis(x, 4, 8));
};
constexpr auto other_axis = [](graph_builder& b) {
  const node n = b.input("x", dtype::f32, {3, 8}).softmax(0);
  b.output(last_axis(n, 0, 4) + last_axis(n, 4, 8));
};
constexpr auto unequal = [](graph_builder& b) {
  const node n = b.input("x", dtype::f32, {3, 8}).softmax();
  b.output(last_axis(n, 0, 3).exp());
  b.output(last_axis(n, 3, 8).exp());
};
constexpr auto unread = [](graph_builder& b) {
  b.output(last_axis(b.input("x", dtype::f32, {3, 8}).rms_normalize(), 0, 4));
};
constexpr auto shared_factor = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {3, 8}), mean = x.reduce_mean({-1}), n = x - mean;
  b.output(last_axis(n, 0, 4) * last_axis(n, 4, 8));
  b.output(mean);
};
template <class Build> constexpr bool changes(Build build) {
  graph p = made_by(build);
  return split_rows(p).changed();
}
static_assert(changes(rotary) && !changes(read_elsewhere) && !changes(no_reduction) && !changes(other_axis));
static_assert(!changes(unequal) && !changes(unread) && !changes(shared_factor));

TEST(split_rows, keeps_the_meaning) {
  const auto check = [](auto build) {
    for (const int passes : {0, 1, 2}) {
      const graph p = passes == 0   ? after(build, split)
                      : passes == 1 ? after(build, fuse)
                                    : after(build, halve_and_fuse);
      EXPECT_TRUE(find_faults(p).empty()) << print(p).view();
      EXPECT_LE(difference(made_by(build), p), 1e-6) << print(p).view();
    }
  };
  check(rotary);
  check(rotate_half);
  check(renamed);
  check(one_row);
  check(summed_before);
  check(thirds);
  check(shared_operand);
  check(read_elsewhere);
  check(no_reduction);
  check(other_axis);
  check(unequal);
  check(unread);
  check(shared_factor);
}

TEST(split_rows, counts_rows_and_says_what_rounds_otherwise) {
  graph p = made_by(rotary);
  const pass_note note = split_rows(p);
  EXPECT_EQ(note.counts.total(), 1u);
  EXPECT_EQ(note.remarks.size(), 1u);
  EXPECT_FALSE(split_rows(p).changed());
  graph q = made_by(thirds);
  EXPECT_TRUE(split_rows(q).remarks.empty()) << "sums round as before but for their order";
}

}  // namespace
}  // namespace kiln::test

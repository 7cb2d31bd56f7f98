#include "kiln/pass/fuse_reduce.hpp"

#include <gtest/gtest.h>

#include "kiln/pass/fuse_pointwise.hpp"
#include "pass/fusion_models.hpp"

namespace kiln::test {
namespace {

constexpr auto fuse = [](graph& p) { fuse_reduce(p); };
constexpr auto fuse_all = [](graph& p) {
  fuse_reduce(p);
  fuse_pointwise(p);
};

constexpr auto softmax = [](graph_builder& b) { b.output(b.input("x", dtype::f32, {4, 8}).softmax()); };
constexpr std::string_view softmax_text = R"(main:
  %0 = x : f32[4, 8]
  %1 = fused{kind = reduce, body = @1}(%0) : f32[4, 8]
  return output_0 = %1
reduce_max_sub_exp_reduce_sum_div @1:
  %0 = p0 : f32[4, 8]
  %1 = reduce_max{axes = [-1]}(%0) : f32[4, 1]
  %2 = multibroadcast{to = [4, 8]}(%1) : f32[4, 8]
  %3 = sub(%0, %2) : f32[4, 8]
  %4 = exp(%3) : f32[4, 8]
  %5 = reduce_sum{axes = [-1]}(%4) : f32[4, 1]
  %6 = multibroadcast{to = [4, 8]}(%5) : f32[4, 8]
  %7 = div(%4, %6) : f32[4, 8]
  return r0 = %7
)";
static_assert(print(after(softmax, fuse)).view() == softmax_text);

constexpr auto log_softmax = [](graph_builder& b) { b.output(b.input("x", dtype::f32, {2, 3, 8}).log_softmax()); };
static_assert(kernel_count(after(log_softmax, fuse)) == 1);

// exporters' layer norm after a residual sum that is read again: one kernel, two results
constexpr auto layer_norm = [](graph_builder& b) {
  const node s = b.input("x", dtype::f32, {2, 3, 16}) + b.input("y", dtype::f32, {2, 3, 16});
  const node d = s - s.reduce_mean({-1});
  const node n = d / ((d * d).reduce_mean({-1}) + 1e-5f).sqrt();
  b.output(n * b.input("scale", dtype::f32, {16}) + b.input("bias", dtype::f32, {16}));
  b.output(s);
};
static_assert(kernel_count(after(layer_norm, fuse)) == 1);

// the same over two axes, reduced dims dropped and put back
constexpr auto dropped_dims = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {3, 4, 5});
  const node mean = x.reduce_mean({1, 2}).squeeze({1, 2});
  const node spread = (x * x).reduce_mean({1, 2}).reshape({3}) - mean * mean;
  const node factor = (spread + b.input("epsilon", dtype::f32, {3})).rsqrt();
  b.output((x - mean.unsqueeze({1, 2})) * factor.reshape({3, 1, 1}));
  b.output(spread);
};
static_assert(kernel_count(after(dropped_dims, fuse)) == 1);

// [rms_norm]
constexpr auto rms_norm = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {1, 3, 16}), w = b.input("w", dtype::f32, {16});
  b.output(x * (b.scalar(dtype::f32, 1.0f) / ((x * x).reduce_mean({-1}) + 1e-6f).sqrt()) * w);
};
static_assert(kernel_count(after(rms_norm, fuse)) == 1);
// [/rms_norm]

// means of rows that are subtracted from columns are no repetition along the row
constexpr auto turned = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 4});
  b.output(x - x.reduce_mean({1}).squeeze({1}).broadcast_to({4, 4}));
};
static_assert(kernel_count(after(turned, fuse_all)) == 2);

// a broadcast mean that something else reads stays a view of the kernel's result
constexpr auto shared_mean = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 8});
  const node mean = x.reduce_mean({1}).broadcast_to({4, 8});
  b.output(x - mean);
  b.output(mean.transpose({1, 0}));
};
static_assert(kernel_count(after(shared_mean, fuse)) == 1);

constexpr auto pooled = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 3, 4, 4});
  b.output(x.relu().reduce_mean({2, 3}).sigmoid());
};
static_assert(kernel_count(after(pooled, fuse)) == 1);

// the axes need not be the last
constexpr auto columns = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 8, 2});
  b.output(((x * 2.0f).reduce_sum({1}) + 1.0f).relu());
};
static_assert(kernel_count(after(columns, fuse)) == 1);
constexpr auto column_softmax = [](graph_builder& b) { b.output(b.input("x", dtype::f32, {4, 8, 2}).softmax(1)); };
static_assert(kernel_count(after(column_softmax, fuse)) == 1);
constexpr auto unit_columns = [](graph_builder& b) { b.output(b.input("x", dtype::f32, {4, 8, 1}).softmax(1)); };
static_assert(kernel_count(after(unit_columns, fuse)) == 1);

// sums over different axes do not share rows
constexpr auto two_axes = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 4}).relu();
  b.output(x - x.reduce_sum({1}));
  b.output(x - x.reduce_sum({0}));
};
static_assert(find_faults(after(two_axes, fuse_all)).empty());

// a product between two normalizations: one kernel before it, one after
constexpr auto around = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 4}).relu();
  const node n = x.rms_normalize();
  b.output((n.dot(b.input("w", dtype::f32, {4, 4})) + x).softmax());
};
static_assert(kernel_count(after(around, fuse_all)) == 3);

TEST(fuse_reduce, keeps_the_meaning) {
  const auto check = [](auto build) {
    for (const bool everything : {false, true}) {
      const graph p = everything ? after(build, fuse_all) : after(build, fuse);
      EXPECT_TRUE(find_faults(p).empty()) << print(p).view();
      EXPECT_LE(difference(made_by(build), p), 1e-6) << print(p).view();
    }
  };
  check(softmax);
  check(log_softmax);
  check(layer_norm);
  check(dropped_dims);
  check(rms_norm);
  check(turned);
  check(shared_mean);
  check(pooled);
  check(columns);
  check(column_softmax);
  check(unit_columns);
  check(two_axes);
  check(around);
}

TEST(fuse_reduce, a_shared_value_is_a_second_result) {
  const graph p = after(layer_norm, fuse);
  EXPECT_EQ(p.module({1}).outputs.size(), 2u);
}

TEST(fuse_reduce, bodies_hold_full_and_reduced_extents_only) {
  const graph p = after(dropped_dims, fuse);
  const auto& body = p.module({1});
  for (std::uint32_t i = 0; i < body.size(); ++i) {
    if (body[i].kind == instruction_kind::literal) continue;
    EXPECT_EQ(body[i].results[0].rank(), 3u) << print(p).view();
  }
}

}  // namespace
}  // namespace kiln::test

#include "kiln/pass/sink_pointwise.hpp"

#include <gtest/gtest.h>

#include "kiln/pass/fuse_pointwise.hpp"
#include "pass/fusion_models.hpp"

namespace kiln::test {
namespace {

constexpr auto sink = [](graph& p) {
  sink_pointwise(p);
  fuse_pointwise(p);
};

// a causal mask as exporters write it: positions compared over [s, t], repeated over the batch
constexpr auto mask = [](graph_builder& b) {
  const node row = b.input("row", dtype::i64, {3, 1}), column = b.input("column", dtype::i64, {1, 5});
  const node seen = column < row + b.scalar(dtype::i64, 1);
  const node kept = b.input("kept", dtype::i64, {2, 1, 1, 5}) < b.input("limit", dtype::i64, {2, 1, 1, 5});
  b.output(seen.unsqueeze({0, 1})
               .broadcast_to({2, 1, 3, 5})
               .where(kept.broadcast_to({2, 1, 3, 5}).convert(dtype::f32), b.scalar(dtype::f32, -1.0f)));
};
static_assert(kernel_count(after(mask, sink)) == 1);

// floats are not computed again, nor is what two places read
constexpr auto dear = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 1}).exp();
  b.output(x.broadcast_to({4, 8}) * b.input("y", dtype::f32, {4, 8}));
};
static_assert(kernel_count(after(dear, sink)) == 2);
constexpr auto read_twice = [](graph_builder& b) {
  const node x = b.input("x", dtype::i64, {4, 1}) + b.scalar(dtype::i64, 1);
  b.output(x.broadcast_to({4, 8}) + b.input("y", dtype::i64, {4, 8}));
  b.output(x);
};
static_assert(kernel_count(after(read_twice, sink)) == 2);

TEST(sink_pointwise, keeps_the_meaning) {
  const auto check = [](auto build) {
    const graph p = after(build, sink);
    EXPECT_TRUE(find_faults(p).empty()) << print(p).view();
    EXPECT_EQ(difference(made_by(build), p), 0) << print(p).view();
  };
  check(mask);
  check(dear);
  check(read_twice);
}

TEST(sink_pointwise, counts_what_it_moved) {
  graph p = made_by(mask);
  const pass_note note = sink_pointwise(p);
  EXPECT_EQ(note.counts.total(), 3u) << "two comparisons and the sum that one of them reads";
  EXPECT_FALSE(sink_pointwise(p).changed());
}

}  // namespace
}  // namespace kiln::test

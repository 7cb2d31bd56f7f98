#include "kiln/pass/merge_products.hpp"

#include <gtest/gtest.h>

#include "kiln/pass/fuse_contraction.hpp"
#include "kiln/pass/fuse_pointwise.hpp"
#include "pass/fusion_models.hpp"

namespace kiln::test {
namespace {

constexpr auto merge = [](graph& p) { merge_products(p); };
constexpr auto fuse = [](graph& p) {
  fuse_contraction(p);
  fuse_pointwise(p);
};
constexpr node matrix(graph_builder& b, const dims& lens, float first) {
  small_vector<float> x;
  for (std::int64_t i = 0; i < product(lens).value(); ++i) x.push_back(first + static_cast<float>(i % 7) * 0.125f);
  return b.constant<float>(dtype::f32, lens, x);
}

constexpr auto projections = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 3, 4});
  const auto heads = [&](node y, std::int64_t n) { return y.reshape({2, 3, n, 2}).transpose({0, 2, 1, 3}); };
  b.output(heads(x.dot(matrix(b, {4, 6}, 0.5f)), 3));
  b.output(heads(x.dot(matrix(b, {4, 2}, -1.0f)), 1));
  b.output(heads(x.dot(matrix(b, {4, 4}, 0.25f)), 2));
};
static_assert(kernel_count(after(projections, merge)) == 1);

constexpr auto biased = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {1, 3, 4});
  b.output((matrix(b, {6}, 1.0f) + x.dot(matrix(b, {1, 4, 6}, 0.5f))).transpose({0, 2, 1}));
  b.output((x.dot(matrix(b, {4, 2}, -1.0f)) + matrix(b, {1, 1, 2}, 2.0f)).transpose({0, 2, 1}));
};
static_assert(kernel_count(after(biased, merge, fuse)) == 1);

// kept apart: an epilogue, a result that is an output, a view that would copy, a left operand of its own
constexpr auto epilogues = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {3, 4});
  b.output(x.dot(matrix(b, {4, 6}, 0.5f)).relu());
  b.output(x.dot(matrix(b, {4, 6}, -0.5f)).relu());
};
constexpr auto outputs = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {3, 4});
  b.output(x.dot(matrix(b, {4, 6}, 0.5f)));
  b.output(x.dot(matrix(b, {4, 6}, -0.5f)));
};
constexpr auto flattened = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {3, 4});
  b.output(x.dot(matrix(b, {4, 6}, 0.5f)).reshape({18}));
  b.output(x.dot(matrix(b, {4, 6}, -0.5f)).reshape({18}));
};
constexpr auto right_operands = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 4});
  b.output(matrix(b, {4, 4}, 0.5f).dot(x).transpose({1, 0}));
  b.output(matrix(b, {4, 4}, -0.5f).dot(x).transpose({1, 0}));
};
static_assert(kernel_count(after(epilogues, merge, fuse)) == 2);
static_assert(kernel_count(after(outputs, merge)) == 2);
static_assert(kernel_count(after(flattened, merge)) == 2);
static_assert(kernel_count(after(right_operands, merge)) == 2);

// neither extents nor a place that a run decides
TEST(merge_products, leaves_views_of_constants_that_a_run_sizes) {
  const auto joined = [](auto build) {
    graph p = made_by(build);
    const std::uint32_t n = merge_products(p).counts.total();
    EXPECT_TRUE(find_faults(p).empty());
    return n;
  };
  const auto rows_from = [](graph_builder& b, const node& x, dimension first, dimension count) {
    for (const float v : {0.5f, 2.0f}) {
      const op::slice rows{.axes = {0}, .starts = {first}, .ends = {first + count}};
      b.output(x.dot(matrix(b, {8, 3}, v).slice(rows)).transpose({1, 0}));
    }
  };
  EXPECT_EQ(joined([&](graph_builder& b) {
              const dimension k = dimension::symbol("k", 1, 8);
              rows_from(b, b.input("x", dtype::f32, {2, k}), 0, k);
            }),
            0u);
  EXPECT_EQ(joined([&](graph_builder& b) {
              const dimension at = dimension::symbol("at", 0, 4);
              b.input("y", dtype::f32, {at});
              rows_from(b, b.input("x", dtype::f32, {2, 4}), at, 4);
            }),
            0u);
  EXPECT_EQ(joined([&](graph_builder& b) { rows_from(b, b.input("x", dtype::f32, {2, 4}), 2, 4); }), 2u);
}

TEST(merge_products, keeps_the_meaning) {
  const auto check = [](auto build) {
    const graph p = after(build, merge), fused = after(build, merge, fuse);
    EXPECT_TRUE(find_faults(p).empty()) << print(p).view();
    EXPECT_LE(difference(made_by(build), p), 1e-6) << print(p).view();
    EXPECT_LE(difference(made_by(build), fused), 1e-6) << print(fused).view();
  };
  check(projections);
  check(biased);
  check(epilogues);
  check(flattened);
  check(right_operands);
}

TEST(merge_products, counts_what_it_joined) {
  graph p = made_by(projections);
  EXPECT_EQ(merge_products(p).counts.total(), 3u);
}

TEST(fusion_body, layers_of_equal_form_share_a_body) {
  const graph p = after(
      [](graph_builder& b) {
        node x = b.input("x", dtype::f32, {2, 4});
        for (int i = 0; i < 3; ++i) x = (x.dot(matrix(b, {4, 4}, 0.5f)) + 1.0f).relu();
        b.output((x.dot(matrix(b, {4, 4}, 0.5f)) + 2.0f).relu());
      },
      fuse);
  EXPECT_EQ(fused_count(p, fusion::contraction), 4u);
  EXPECT_EQ(p.modules(), 3u) << print(p).view();  // main, three equal layers, one with another constant
}

}  // namespace
}  // namespace kiln::test

// Random graphs: whatever is fused, the graph stays acyclic and well formed, and computes the same.
#include <gtest/gtest.h>

#include "kiln/pass/fuse_attention.hpp"
#include "kiln/pass/fuse_contraction.hpp"
#include "kiln/pass/fuse_pointwise.hpp"
#include "kiln/pass/fuse_reduce.hpp"
#include "kiln/pass/merge_products.hpp"
#include "kiln/pass/sink_pointwise.hpp"
#include "pass/fusion_models.hpp"

namespace kiln::test {
namespace {

struct draw {
  std::uint32_t state;
  std::uint32_t operator()(std::uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
  }
};

// A step over values of dims [4, 8]: elementwise, reduced and repeated, a product, a running sum that nothing fuses.
node step(graph_builder& b, draw& next, const std::vector<node>& values) {
  const auto any = [&] {
    const std::uint32_t n = static_cast<std::uint32_t>(values.size());
    return values[next(2) ? n - 1 - next(std::min(n, 4u)) : next(n)];
  };
  const dims full{4, 8};
  const node x = any(), y = any();
  switch (next(14)) {
    case 0: return x + y;
    case 1: return x - y;
    case 2: return (x * y) * 0.5f;
    case 3: return x.relu();
    case 4: return x.sigmoid() * 0.5f + y;
    case 5: return x - x.reduce_mean({1});
    case 6: return (x - x.reduce_max({1})).exp();
    case 7: return x + y.reduce_mean({0});
    case 8: return x * y.reduce_mean({1}).squeeze({1}).sigmoid().unsqueeze({1});
    case 9: return x.softmax();
    case 10:
      return (x.dot(b.weight(text(std::string("w") + std::to_string(b.module().size())).view(), dtype::f32, {8, 8})) *
              0.25f)
          .sigmoid();
    case 11: return b.add(op::cumsum{.axis = 1}, x) * 0.125f;
    case 12: return x.reshape({8, 4}).transpose({1, 0}).sigmoid() + y;
    default: return (x < y).where(x, y * 0.5f) + x.reduce_sum({1}).broadcast_to(full) * 0.1f;
  }
}

graph random_graph(std::uint32_t seed) {
  draw next{seed};
  graph_builder b;
  std::vector<node> values = {b.input("x", dtype::f32, {4, 8}), b.input("y", dtype::f32, {4, 8})};
  const std::uint32_t steps = 4 + next(30);
  for (std::uint32_t i = 0; i < steps; ++i) values.push_back(step(b, next, values).sigmoid());
  b.output(values.back());
  for (std::uint32_t i = next(4); i > 0; --i) b.output(values[next(static_cast<std::uint32_t>(values.size()))]);
  return b.finish();
}

TEST(fusion, keeps_random_graphs) {
  using pass = pass_note (*)(graph&);
  const std::vector<std::vector<pass>> orders = {{fuse_attention<graph>, merge_products<graph>, sink_pointwise<graph>,
                                                  fuse_contraction<graph>, fuse_reduce<graph>, fuse_pointwise<graph>},
                                                 {fuse_pointwise<graph>},
                                                 {fuse_reduce<graph>, fuse_pointwise<graph>},
                                                 {fuse_reduce<graph>, fuse_contraction<graph>, fuse_pointwise<graph>}};
  std::uint32_t before = 0, after = 0;
  for (std::uint32_t seed = 1; seed <= 250; ++seed) {
    const graph p = random_graph(seed * 7919u);
    graph fused = p;
    for (const pass run : orders[seed % orders.size()]) run(fused);
    const auto faults = find_faults(fused);
    ASSERT_TRUE(faults.empty()) << "seed " << seed << '\n' << print(p).view() << print(fused).view();
    ASSERT_LE(difference(p, fused), 1e-6) << "seed " << seed << '\n' << print(p).view() << print(fused).view();
    before += kernel_count(p);
    after += kernel_count(fused);
  }
  EXPECT_LT(after * 2, before);  // it is not by leaving everything alone
}

}  // namespace
}  // namespace kiln::test

#include "kiln/pass/unread_taps.hpp"

#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) { return cut_unread_taps(p); };

struct problem {
  dims x, w;
  op::convolution attributes;
  dims left;  ///< extents of the weights after the pass
};

auto convolved(const problem& p) {
  return [&p](auto& b) { b.output(b.input("x", dtype::f32, p.x).conv(b.weight("w", dtype::f32, p.w), p.attributes)); };
}

// The weights of the convolution of a program.
dims weights_of(const program& p) {
  const auto& m = p.main();
  for (const std::uint32_t i : m.order())
    if (m[i].kind == instruction_kind::op && m[i].op.template is<op::convolution>())
      return m.shape_of(m[i].inputs[1]).lens;
  return {};
}

// A tap that reads one pixel of one window stays.
TEST(unread_taps, outer_taps_that_read_padding_alone_are_cut) {
  const problem problems[] = {
      {{1, 2, 6, 6}, {3, 2, 3, 3}, {.dilation = {6, 6}, .pads = {6, 6, 6, 6}}, {3, 2, 1, 1}},
      {{1, 2, 7, 7}, {3, 2, 3, 3}, {.dilation = {6, 6}, .pads = {6, 6, 6, 6}}, {3, 2, 3, 3}},
      {{2, 2, 6, 7}, {3, 2, 3, 3}, {.dilation = {6, 6}, .pads = {6, 6, 6, 6}}, {3, 2, 1, 3}},
      {{1, 4, 5}, {6, 2, 5}, {.dilation = {3}, .pads = {6, 6}, .group = 2}, {6, 2, 3}},
      {{1, 4, 9}, {2, 4, 4}, {.dilation = {4}, .pads = {12, 0}}, {2, 4, 3}},  // one window
      {{1, 4, 3}, {2, 4, 5}, {.stride = {2}, .pads = {0, 7}}, {2, 4, 3}},     // behind
      {{1, 4, 3}, {2, 4, 5}, {.stride = {2}, .pads = {7, 1}}, {2, 4, 4}},     // before, at stride 2
      {{1, 1, 4, 4}, {1, 1, 3, 3}, {.dilation = {5, 5}, .pads = {7, 7, 7, 7}}, {1, 1, 3, 3}},
      {{1, 1, 4, 4}, {1, 1, 3, 3}, {.dilation = {4, 5}, .pads = {4, 6, 4, 4}}, {1, 1, 1, 2}},
      {{1, 2, 2, 3, 4}, {2, 2, 3, 3, 3}, {.dilation = {2, 1, 4}, .pads = {2, 1, 4, 2, 1, 4}}, {2, 2, 1, 3, 1}},
  };
  for (const problem& q : problems) {
    auto p = built<builder>(convolved(q));
    const program before = p;
    const bool cut = !(q.left == q.w);
    EXPECT_EQ(run(p).changed(), cut);
    EXPECT_EQ(weights_of(p), q.left) << print(p).view();
    EXPECT_TRUE(find_faults(p).empty()) << print(p).view();
    EXPECT_TRUE(same_results(before, p, 1e-6)) << print(p).view();
    EXPECT_FALSE(run(p).changed()) << print(p).view();
  }
}

// Those that a run gives would be copied in each run.
TEST(unread_taps, filters_of_a_run_stay) {
  auto p = built<builder>([](builder& b) {
    b.output(b.input("x", dtype::f32, {1, 2, 6, 6})
                 .conv(b.input("w", dtype::f32, {3, 2, 3, 3}), {.dilation = {6, 6}, .pads = {6, 6, 6, 6}}));
  });
  EXPECT_FALSE(run(p).changed()) << print(p).view();
}

// For all sizes that an image may have, or not at all.
TEST(unread_taps, images_of_any_size) {
  for (const std::int64_t most : {6, 7}) {
    const dimension n = dimension::symbol("n", 1, most);
    const problem q{{1, 2, n, 4}, {3, 2, 3, 1}, {.dilation = {6, 1}, .pads = {6, 0, 6, 0}}, {}};
    auto p = built<builder>(convolved(q));
    EXPECT_EQ(run(p).changed(), most == 6) << print(p).view();
  }
}

// A bound may be looser than what it bounds, and its product with the stride beyond 64 bits.
TEST(unread_taps, images_whose_bound_is_as_great_as_integers_are) {
  const dimension n = dimension::symbol("n", 1, std::int64_t{1} << 55);
  for (const std::int64_t stride : {512, 1024, 4096}) {
    const problem q{{1, 1, n * stride}, {1, 1, 3}, {.stride = {stride}, .pads = {4, 4}}, {}};
    auto p = built<builder>(convolved(q));
    EXPECT_FALSE(run(p).changed()) << print(p).view();
  }
}

}  // namespace
}  // namespace kiln::test

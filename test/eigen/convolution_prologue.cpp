// What scales, shifts and clamps the channels in front of a 1x1 convolution runs in the convolution's kernel.
#include <gmock/gmock.h>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

value weights(builder& b, dims lens, unsigned seed) {
  return b.constant(random_argument({dtype::f32, std::move(lens)}, seed, -0.3, 0.3).to_literal());
}

value by_channel(builder& b, const value& x, unsigned seed) {
  return x.make_along(1, weights(b, {x.get_shape().lens[1]}, seed));
}

value conv1x1(builder& b, const value& x, std::int64_t out, const op::convolution& attributes = {}) {
  return x.conv(weights(b, {out, x.get_shape().lens[1].value() / attributes.group, 1, 1}, 3), attributes);
}

std::size_t prologues(const std::function<void(builder&)>& make) {
  std::size_t n = 0;
  const executable e = compile_eigen(make);
  for (const step_info& s : e.report().steps) n += s.kernel.starts_with("prologue+convolution");
  return n;
}

struct image {
  const char* name;
  dims x;
  std::int64_t out;
};
const image images[] = {{"channels fill vectors", {1, 64, 14, 14}, 128},
                        {"many pixels", {1, 48, 40, 37}, 96},
                        {"many channels", {1, 700, 7, 7}, 64},
                        {"few channels", {2, 5, 9, 7}, 11},
                        {"more outputs than pixels", {1, 32, 5, 5}, 300},
                        {"one pixel", {3, 20, 1, 1}, 33}};

void expect_prologue(const std::function<value(builder&, const value&)>& change) {
  for (const image& i : images) {
    SCOPED_TRACE(i.name);
    const auto make = [&](builder& b) { b.output(conv1x1(b, change(b, b.input("x", dtype::f32, i.x)), i.out)); };
    expect_same(make, {5e-5, 5e-5});
    EXPECT_EQ(prologues(make), 1u);
    EXPECT_EQ(compile_eigen(make).report().steps.size(), 1u);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(convolution_prologue, scale_shift_and_relu) {
  expect_prologue([](builder& b, const value& x) { return (x * by_channel(b, x, 1) + by_channel(b, x, 2)).relu(); });
}

TEST(convolution_prologue, parts_of_that) {
  expect_prologue([](builder&, const value& x) { return x.relu(); });
  expect_prologue([](builder& b, const value& x) { return (x + by_channel(b, x, 2)).relu(); });
  expect_prologue([](builder& b, const value& x) { return (x * by_channel(b, x, 1)).relu(); });
}

TEST(convolution_prologue, numbers_that_all_channels_share) {
  expect_prologue([](builder&, const value& x) { return (x * 0.75F + 0.125F).relu(); });
}

TEST(convolution_prologue, bounds_within_bounds) {
  for (const auto& [low, high] : {std::pair{-0.25, 0.25}, {0.5, 0.75}, {-2., -1.}})
    expect_prologue([&](builder& b, const value& x) {
      const auto scalar = [&](double v) { return b.scalar(dtype::f32, v); };
      const value inner = (x * by_channel(b, x, 1)).max(scalar(low)).min(scalar(high));
      return inner.max(scalar(-0.125)).min(scalar(0.625));
    });
}

TEST(convolution_prologue, an_epilogue_that_reads_the_same_input) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {1, 32, 10, 10});
    const value y = conv1x1(b, (x * by_channel(b, x, 1) + by_channel(b, x, 2)).relu(), 32);
    b.output((y + by_channel(b, y, 4) + x).relu());
  };
  expect_same(make, {5e-5, 5e-5});
  const executable e = compile_eigen(make);
  EXPECT_EQ(e.report().steps.size(), 1u);
  EXPECT_EQ(prologues(make), 1u);
}

TEST(convolution_prologue, in_a_network_whose_images_have_their_channels_last) {
  const auto make = [](builder& b) {
    value x = b.input("x", dtype::f32, {1, 3, 24, 24})
                  .conv(weights(b, {32, 3, 3, 3}, 5), {.stride = {2, 2}, .pads = {1, 1, 1, 1}});
    for (unsigned layer = 0; layer < 3; ++layer) {
      const value bottleneck =
          conv1x1(b, (x * by_channel(b, x, layer) + by_channel(b, x, layer + 7)).relu(), 64).relu();
      const value grown = bottleneck.conv(weights(b, {16, 64, 3, 3}, 6), {.pads = {1, 1, 1, 1}});
      x = x.concat(grown, 1);
    }
    b.output(x);
  };
  expect_same(make, {5e-5, 5e-5});
  EXPECT_EQ(prologues(make), 3u);
}

TEST(convolution_prologue, extents_that_only_the_run_knows) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {dimension::symbol("n"), 24, dimension::symbol("h"), 8});
    b.output(conv1x1(b, (x * by_channel(b, x, 1) + by_channel(b, x, 2)).relu(), 40));
  };
  for (const std::int64_t height : {1, 9, 30})
    expect_same(make, std::vector{random_argument({dtype::f32, {2, 24, height, 8}}, 1)}, {5e-5, 5e-5});
  EXPECT_EQ(prologues(make), 1u);
}

TEST(convolution_prologue, nothing_else_is_taken_in) {
  const std::pair<const char*, std::function<void(builder&, const value&)>> others[] = {
      {"read twice",
       [](builder& b, const value& x) {
         const value y = x.relu();
         b.output(conv1x1(b, y, 8)), b.output(y);
       }},
      {"a window of several pixels",
       [](builder& b, const value& x) {
         b.output(x.relu().conv(weights(b, {8, 16, 3, 3}, 3)));
       }},
      {"a stride",
       [](builder& b, const value& x) {
         b.output(conv1x1(b, x.relu(), 8, {.stride = {2, 2}}));
       }},
      {"padding",
       [](builder& b, const value& x) {
         b.output(conv1x1(b, x.relu(), 8, {.pads = {1, 1, 1, 1}}));
       }},
      {"groups", [](builder& b, const value& x) { b.output(conv1x1(b, x.relu(), 8, {.group = 4})); }},
      {"factors of the run",
       [](builder& b, const value& x) {
         b.output(conv1x1(b, (x * x.make_along(1, b.input("s", dtype::f32, {16}))).relu(), 8));
       }},
      {"factors of pixels",
       [](builder& b, const value& x) {
         b.output(conv1x1(b, (x + weights(b, {9, 9}, 4)).relu(), 8));
       }},
      {"another function", [](builder& b, const value& x) { b.output(conv1x1(b, x.tanh(), 8)); }},
      {"a factor behind the bound",
       [](builder& b, const value& x) { b.output(conv1x1(b, x.relu() + by_channel(b, x, 2), 8)); }},
  };
  for (const auto& [name, change] : others) {
    SCOPED_TRACE(name);
    const auto make = [&](builder& b) { change(b, b.input("x", dtype::f32, {1, 16, 9, 9})); };
    expect_same(make, {5e-5, 5e-5});
    EXPECT_EQ(prologues(make), 0u);
  }
}

}  // namespace
}  // namespace kiln::testing

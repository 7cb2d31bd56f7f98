// Inverted residuals: the pointwise convolution and the depthwise one that reads it run as one step where what is
// between exceeds the caches.
#include <gmock/gmock.h>

#include "kiln/runtime/own_cache.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

constexpr std::int64_t expanded = 40;

// The side of images of which the step is worth it: what is between takes half of an L2 cache or little more.
std::int64_t side() {
  return static_cast<std::int64_t>(std::sqrt(static_cast<double>(own_cache_bytes()) / 8 / expanded)) + 2;
}

value constant(builder& b, dims lens, unsigned seed) {
  return b.constant(random_argument({dtype::f32, std::move(lens)}, seed, -0.5, 0.5).to_literal());
}
value biased(builder& b, const value& y, unsigned seed) {
  return y.add_along(1, constant(b, {y.get_shape().lens[1]}, seed));
}
value pointwise(builder& b, const value& x, std::int64_t out, unsigned seed) {
  return biased(b, x.conv(constant(b, {out, x.get_shape().lens[1], 1, 1}, seed)), seed + 1);
}
value depthwise(builder& b, const value& x, std::int64_t side, std::int64_t stride, unsigned seed) {
  const std::int64_t channels = x.get_shape().lens[1].value(), pad = side / 2;
  op::convolution how;
  how.group = channels;
  how.stride = {stride, stride};
  how.pads = {pad, pad, pad, pad};
  return biased(b, x.conv(constant(b, {channels, 1, side, side}, seed), how), seed + 1);
}
value clip(builder& b, const value& x) {
  return b.add(op::clip{}, x, b.scalar(dtype::f32, 0.), b.scalar(dtype::f32, 6.));
}

std::size_t strips(const executable& e) {
  std::size_t n = 0;
  for (const step_info& s : e.report().steps) {
    n += s.kernel == "convolution, depthwise convolution (strips)";
    EXPECT_FALSE(s.fallback) << s.kernel;
  }
  return n;
}

void expect_strips(const std::function<void(builder&)>& make, std::size_t count) {
  expect_same(make, {5e-5, 5e-5});
  EXPECT_EQ(strips(compile_eigen(make)), count);
}

TEST(expanded_depthwise, block_with_residual_is_two_steps) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {1, 8, side(), side()});
    const value wide = clip(b, pointwise(b, x, expanded, 1));
    b.output(pointwise(b, clip(b, depthwise(b, wide, 3, 1, 3)), 8, 5) + x);
  };
  expect_strips(make, 1);
  const auto steps = compile_eigen(make).report().steps;
  EXPECT_EQ(std::count_if(steps.begin(), steps.end(),
                          [](const step_info& s) { return s.kernel.find("convolution") != s.kernel.npos; }),
            2);
}

TEST(expanded_depthwise, activations_strides_and_no_epilogue) {
  using function = value (*)(builder&, const value&);
  const function functions[] = {
      [](builder&, const value& y) { return y; },
      [](builder&, const value& y) { return y.silu(); },
      [](builder& b, const value& y) { return b.add(op::hard_swish{}, y); },
      [](builder&, const value& y) { return y.sigmoid() * y.sigmoid(); },
  };
  for (const function& f : functions)
    expect_strips(
        [&](builder& b) {
          const value x = b.input("x", dtype::f32, {2, 5, side(), side() - 3});
          b.output(f(b, depthwise(b, f(b, pointwise(b, x, expanded, 1)), 5, 2, 3)));
        },
        1);
  expect_strips(
      [&](builder& b) {
        const value x = b.input("x", dtype::f32, {1, 5, side(), side()});
        op::convolution how;
        how.group = expanded;
        b.output(x.conv(constant(b, {expanded, 5, 1, 1}, 1)).conv(constant(b, {expanded, 1, 3, 3}, 2), how));
      },
      1);
}

TEST(expanded_depthwise, what_others_read_stays) {
  expect_strips(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {1, 8, side(), side()});
        const value wide = pointwise(b, x, expanded, 1).relu();
        b.output(depthwise(b, wide, 3, 1, 3));
        b.output(wide);
      },
      0);
  expect_strips(
      [](builder& b) {  // it is added to what is made of it
        const value x = b.input("x", dtype::f32, {1, 8, side(), side()});
        const value wide = pointwise(b, x, expanded, 1).relu();
        b.output(depthwise(b, wide, 3, 1, 3) + wide);
      },
      0);
}

TEST(expanded_depthwise, weights_of_a_run_stay_separate) {
  expect_strips(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {1, 8, side(), side()});
        const value w = b.input("w", dtype::f32, {expanded, 8, 1, 1});
        b.output(depthwise(b, x.conv(w), 3, 1, 3));
      },
      0);
}

TEST(expanded_depthwise, small_images_stay_separate) {
  expect_strips(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {1, 8, 9, 7});
        b.output(depthwise(b, pointwise(b, x, expanded, 1).relu(), 3, 1, 3));
      },
      0);
}

TEST(expanded_depthwise, batch_of_any_size) {
  const auto make = [](builder& b, const dimension& n) {
    const value x = b.input("x", dtype::f32, {n, 8, side(), side()});
    b.output(pointwise(b, clip(b, depthwise(b, clip(b, pointwise(b, x, expanded, 1)), 3, 2, 3)), 12, 5));
  };
  const executable any = compile_eigen([&](builder& b) { make(b, dimension::symbol("n")); });
  EXPECT_EQ(strips(any), 1u);
  for (const std::int64_t n : {1, 3, 0}) {
    const argument x = random_argument({dtype::f32, {n, 8, side(), side()}}, 9);
    const auto fixed = [&](builder& b) { make(b, n); };
    const auto expected = reference_run(fixed, {&x, 1});
    expect_close(any.run({&x, 1})[0], expected[0], {5e-5, 5e-5});
  }
}

}  // namespace
}  // namespace kiln::testing

// Transposed convolutions through the Eigen target: dims, strides, dilations, pads, groups, bands of rows.
#include <gmock/gmock.h>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

constexpr tolerance close{2e-5, 1e-5};

struct problem {
  dims x, w;
  op::deconvolution op;
};

const problem problems[] = {
    {{1, 3, 5}, {3, 4, 3}, {}},
    {{2, 4, 7}, {4, 3, 4}, {.stride = {3}, .dilation = {2}, .output_padding = {1}, .pads = {2, 1}, .group = 2}},
    {{1, 5, 4, 6}, {5, 7, 2, 2}, {.stride = {2, 2}}},
    {{2, 6, 5, 3}, {6, 2, 4, 3}, {.stride = {2, 1}, .dilation = {1, 3}, .pads = {1, 2, 1, 0}, .group = 3}},
    {{1, 4, 3, 3}, {4, 1, 3, 3}, {.stride = {2, 2}, .output_padding = {1, 1}, .pads = {1, 1, 1, 1}, .group = 4}},
    {{1, 2, 3, 4, 2}, {2, 3, 2, 3, 2}, {.stride = {1, 2, 2}, .pads = {1, 0, 0, 0, 1, 1}}},
    {{1, 3, 2, 2}, {3, 2, 5, 5}, {.pads = {3, 3, 3, 3}}},                       // some taps reach nothing
    {{1, 3, 70, 90}, {3, 64, 3, 3}, {.stride = {2, 2}, .pads = {1, 1, 1, 1}}},  // several bands
    {{1, 3, 70, 90}, {3, 64, 3, 3}, {.stride = {1, 3}, .dilation = {2, 1}}},
    {{2, 3, 9, 2100}, {3, 2, 3, 5}, {.stride = {2, 2}, .pads = {1, 1, 1, 2}}},  // rows of several parts
    {{2, 4, 9, 40}, {4, 2, 3, 5}, {.stride = {2, 3}, .pads = {1, 0, 1, 2}, .group = 4}},
    {{1, 2, 3}, {2, 1, 2}, {.stride = {5000}}},
    {{1, 2, 3, 4}, {2, 3, 2, 3}, {.stride = {3, 5}, .output_padding = {2, 4}}},  // some results read nothing
    {{1, 2, 5, 7}, {2, 1, 3, 70}, {.stride = {2, 3}, .pads = {1, 30, 1, 33}}},   // more taps than are listed
    {{2, 4, 7, 6}, {4, 3, 3, 2}, {.dilation = {2, 1}, .output_padding = {1, 0}, .pads = {1, 0, 2, 1}, .group = 2}},
};

// Constant weights at stride 1 are those of a convolution where windows reach as far as the image, and fit.
bool is_convolution(const problem& p) {
  if (p.x[2] == dimension(2) && p.w[2] == dimension(5)) return false;  // nothing is left of the result
  for (const std::int64_t s : p.op.stride)
    if (s != 1) return false;
  for (std::size_t k = 0; k < p.op.pads.size(); ++k)
    if (p.op.pads[k] >= p.w[2 + k % (p.w.size() - 2)].value()) return false;
  return true;
}

value build(builder& b, const problem& p, bool constant) {
  const value x = b.input("x", dtype::f32, p.x);
  const value w =
      constant ? b.constant(random_argument({dtype::f32, p.w}, 5).to_literal()) : b.input("w", dtype::f32, p.w);
  return b.add(p.op, small_vector<value>{x, w});
}

TEST(deconvolution, equals_the_reference) {
  for (const problem& p : problems)
    for (const bool constant : {false, true}) {
      SCOPED_TRACE(::testing::Message() << to_string(shape{dtype::f32, p.x}) << " by "
                                        << to_string(shape{dtype::f32, p.w}) << " constant " << constant);
      const auto make = [&](builder& b) { b.output(build(b, p, constant)); };
      expect_same(make, close);
      const executable e = compile_eigen(make);
      const bool as_convolution = constant && is_convolution(p), far = !p.op.stride.empty() && p.op.stride[0] > 4096;
      if (!far) {
        EXPECT_THAT(e.report().steps[0].kernel, ::testing::StartsWith(as_convolution ? "convolution"
                                                                      : constant     ? "deconvolution (packed"
                                                                                     : "deconvolution"));
      }
      if (::testing::Test::HasFatalFailure()) return;
    }
}

// Several filters for the phases of each: whether they or columns take less work, the results are those of the
// reference.
const problem phased[] = {
    {{1, 33, 13, 11}, {33, 2, 4, 4}, {.stride = {2, 2}, .group = 11}},
    {{3, 26, 9, 10}, {26, 3, 5, 3}, {.stride = {3, 2}, .output_padding = {2, 1}, .pads = {4, 1, 0, 2}, .group = 13}},
    {{2, 24, 7, 19}, {24, 2, 3, 6}, {.stride = {1, 4}, .dilation = {3, 1}, .pads = {2, 5, 1, 3}, .group = 8}},
    {{1, 36, 40}, {36, 3, 7}, {.stride = {5}, .output_padding = {4}, .pads = {6, 2}, .group = 12}},
    {{2, 20, 3, 5, 6}, {20, 2, 2, 4, 3}, {.stride = {2, 2, 3}, .pads = {0, 1, 1, 1, 2, 0}, .group = 10}},
    {{1, 64, 12, 12}, {64, 8, 4, 4}, {.stride = {2, 2}, .pads = {1, 1, 1, 1}}},
    {{3, 16, 70, 90}, {16, 12, 4, 4}, {.stride = {2, 2}, .pads = {1, 1, 1, 1}}},  // images apart
    {{5, 32, 24, 40}, {32, 24, 2, 2}, {.stride = {2, 2}}},                        // two images at a time, then one
};

TEST(deconvolution, phases_equal_the_reference) {
  int chosen = 0;
  for (const problem& p : phased) {
    SCOPED_TRACE(::testing::Message() << to_string(shape{dtype::f32, p.x}) << " by "
                                      << to_string(shape{dtype::f32, p.w}));
    const auto make = [&](builder& b) { b.output(build(b, p, true)); };
    expect_same(make, close);
    const std::string kernel(compile_eigen(make).report().steps[0].kernel);
    EXPECT_THAT(kernel, ::testing::StartsWith("deconvolution (packed"));
    chosen += kernel == "deconvolution (packed phases)";
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GE(chosen, 4);
}

TEST(deconvolution, what_reaches_no_element_is_zero) {
  const auto make = [](builder& b) {
    b.output(build(b, {{1, 2, 3, 3}, {2, 2, 1, 1}, {.stride = {3, 3}}}, true) + 0.0f);
  };
  expect_same(make, close);
}

// Weights that add each channel to its own tap (Col2Im), and those that nearly do.
TEST(deconvolution, columns_that_are_channels) {
  for (const float last : {1.0f, 2.0f})
    for (const std::int64_t groups : {1, 3}) {
      std::vector<float> w;
      for (std::int64_t k = 0; k < groups * 12 * 12; ++k) w.push_back(k / 12 % 12 == k % 12 ? 1.0f : 0.0f);
      w.back() = last;
      expect_same(
          [&](builder& b) {
            const value x = b.input("x", dtype::f32, {2, groups * 12, 5, 7});
            const value weights = b.constant<float>(dtype::f32, {groups * 12, 2, 2, 3}, w);
            b.output(b.add(op::deconvolution{.stride = {2, 1}, .pads = {1, 0, 0, 1}, .group = groups}, x, weights));
          },
          close);
    }
}

// Rows of several vectors, whose ends columns reach in part; more taps than are listed at once.
TEST(deconvolution, columns_of_wide_rows) {
  const auto expect_columns = [](ints block, op::deconvolution d, dims columns) {
    const std::int64_t taps = block[0] * block[1];
    columns = {2, taps, columns[0], columns[1]};
    std::vector<float> w;
    for (std::int64_t k = 0; k < taps * taps; ++k) w.push_back(k / taps == k % taps ? 1.0f : 0.0f);
    expect_same(
        [&](builder& b) {
          const value weights = b.constant<float>(dtype::f32, {taps, 1, block[0], block[1]}, w);
          b.output(b.add(d, b.input("x", dtype::f32, columns), weights));
        },
        close);
  };
  expect_columns({3, 3}, {}, {6, 36});
  expect_columns({3, 3}, {.pads = {1, 1, 1, 1}}, {5, 31});
  expect_columns({2, 5}, {.dilation = {1, 7}, .pads = {0, 20, 0, 3}}, {4, 50});
  expect_columns({9, 9}, {.pads = {4, 4, 4, 4}}, {12, 21});
}

TEST(deconvolution, empty_extents) {
  for (const dims& x : {dims{0, 2, 3, 3}, dims{1, 0, 3, 3}})
    expect_same([&](builder& b) { b.output(build(b, {x, {x[1], 2, 2, 2}, {}}, true)); }, close);
}

}  // namespace
}  // namespace kiln::testing

// Convolutions of 8-bit integers in groups, and of each channel alone.
#include "eigen/integer_layers.hpp"

namespace kiln::testing {
namespace {

struct grouping {
  std::int64_t groups, inputs, outputs;
};
constexpr grouping groupings[] = {{6, 1, 1}, {48, 1, 1}, {70, 1, 1}, {4, 1, 3}, {3, 4, 5}, {2, 20, 16}, {2, 3, 70}};

TEST(integer_groups, sums_are_exact) {
  for (const grouping& g : groupings)
    for (const dtype t : {dtype::u8, dtype::i8})
      for (const std::int64_t zero : {0, 7}) {
        SCOPED_TRACE(::testing::Message() << g.groups << " groups, " << g.inputs << ' ' << to_string(t) << ' ' << zero);
        const auto make = [&](builder& b) {
          const std::int64_t channels = g.groups * g.inputs, filters = g.groups * g.outputs;
          const value x = centered(b, b.input("x", t, {2, channels, 9, 8}), zero);
          const auto w = [&](const dims& lens) { return weights(b, dtype::i8, lens, -128, 127).convert(dtype::i32); };
          b.output(x.conv(w({filters, g.inputs, 3, 3}), {.pads = {1, 1, 1, 1}, .group = g.groups}));
          b.output(x.conv(w({filters, g.inputs, 5, 2}),
                          {.stride = {2, 1}, .dilation = {1, 2}, .pads = {2, 0, 1, 3}, .group = g.groups}));
          b.output(x.conv(w({filters, g.inputs, 2, 3}), {.group = g.groups}));
          b.output(x.conv(w({filters, g.inputs, 1, 1}), {.group = g.groups}));
        };
        expect_same(make, bytes_for(make, false), exact);
        expect_kernel(make, "integer convolution");
        if (::testing::Test::HasFailure()) return;
      }
}

TEST(integer_groups, one_dim_and_three) {
  const auto make = [](builder& b) {
    const auto w = [&](const dims& lens) { return weights(b, dtype::i8, lens, -128, 127).convert(dtype::i32); };
    const value line = centered(b, b.input("line", dtype::u8, {2, 24, 30}), 9),
                solid = centered(b, b.input("solid", dtype::i8, {1, 20, 4, 5, 6}), -3);
    b.output(line.conv(w({24, 1, 3}), {.stride = {2}, .pads = {1, 0}, .group = 24}));
    b.output(line.conv(w({12, 8, 4}), {.dilation = {3}, .pads = {4, 2}, .group = 3}));
    b.output(solid.conv(w({20, 1, 2, 3, 3}), {.pads = {1, 0, 1, 0, 1, 1}, .group = 20}));
    b.output(solid.conv(w({10, 4, 2, 2, 2}), {.pads = {0, 1, 0, 1, 0, 0}, .group = 5}));
  };
  expect_same(make, bytes_for(make, false), exact);
}

TEST(integer_groups, zero_points_of_a_run) {
  const auto make = [](builder& b) {
    const value zero = b.input("zero", dtype::u8, {}).convert(dtype::i32).broadcast_to({2, 12, 9, 8});
    const value x = b.input("x", dtype::u8, {2, 12, 9, 8}).convert(dtype::i32) - zero;
    for (const std::int64_t groups : {3, 12})
      b.output(x.conv(weights(b, dtype::i8, {24, 12 / groups, 3, 3}, -128, 127).convert(dtype::i32),
                      {.stride = {2, 1}, .pads = {1, 1, 1, 0}, .group = groups}));
  };
  expect_same(make, bytes_for(make, false), exact);
}

// What a mobile network repeats: every value between the layers is bytes, and no epilogue leaves the registers. The
// clipped range is narrower than that of the bytes.
void inverted_bottleneck(builder& b, value x, std::int64_t kernel, std::int64_t stride) {
  const auto clipped = [&](value y, float scale, float zero) {
    const value low = b.scalar(dtype::f32, 0.F), high = b.scalar(dtype::f32, 6.F);
    // as exporters spell it, too
    const value bounded = stride == 1 ? b.add(op::clip{}, y, low, high)
                                      : b.add(op::min{}, y.relu(), b.add(op::multibroadcast{y.get_shape().lens}, high));
    return quantized(b, bounded, scale, zero);
  };
  const value wide = clipped(scaled_sums(b, x, 3, {72, 12, 1, 1}, {}, 5), .03F, 20);
  const std::int64_t around = kernel / 2;
  const value deep =
      clipped(scaled_sums(b, wide, 20, {72, 1, kernel, kernel},
                          {.stride = {stride, stride}, .pads = {around, around, around, around}, .group = 72}, 8),
              .02F, 0);
  const value narrow = scaled_sums(b, deep, 0, {12, 72, 1, 1}, {}, 11);
  const value q = quantized(b, narrow, .05F, 120);
  b.output(stride == 1 ? quantized(b, real(b, q, .05F, 120) + real(b, x, .04F, 3), .07F, 90) : q);
}

TEST(integer_groups, mobile_layers_read_and_write_bytes) {
  for (const std::int64_t kernel : {3, 5})
    for (const std::int64_t stride : {1, 2}) {
      const auto make = [&](builder& b) {
        inverted_bottleneck(b, b.input("x", dtype::u8, {2, 12, 9, 10}), kernel, stride);
      };
      expect_same(make, bytes_for(make, false), exact);
      const executable e = compile_eigen(make);
      for (const step_info& s : e.report().steps) EXPECT_NE(s.kernel.find("+requantize"), s.kernel.npos) << s.kernel;
    }
}

// A range of floats that lies beyond that of the bytes leaves one byte.
TEST(integer_groups, clipped_ranges_beyond_the_bytes) {
  for (const auto& [low, high] : {std::pair{-900.F, -800.F}, std::pair{700.F, 900.F}, std::pair{-1e30F, 1.F}}) {
    const auto make = [low = low, high = high](builder& b) {
      const value y = scaled_sums(b, b.input("x", dtype::u8, {1, 8, 5, 5}), 3, {8, 1, 3, 3}, {.group = 8}, 5);
      b.output(quantized(b, b.add(op::clip{}, y, b.scalar(dtype::f32, low), b.scalar(dtype::f32, high)), .03F, 20));
    };
    expect_same(make, bytes_for(make, false), exact);
  }
}

}  // namespace
}  // namespace kiln::testing

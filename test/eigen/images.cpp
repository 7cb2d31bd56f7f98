// Networks of convolutions, whose results the plan keeps in NHWC: they equal the reference, and nothing is copied.
#include <gmock/gmock.h>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

value weights(builder& b, dims lens, unsigned seed) {
  return b.constant(random_argument({dtype::f32, std::move(lens)}, seed, -0.3, 0.3).to_literal());
}

value layer(builder& b, const value& x, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  const std::int64_t in = x.get_shape().lens[1].value(), pad = kernel / 2;
  const value y = x.conv(weights(b, {out, in, kernel, kernel}, static_cast<unsigned>(in + out)),
                         {.stride = {stride, stride}, .pads = {pad, pad, pad, pad}});
  return y.add_along(1, b.constant(random_argument({dtype::f32, {out}}, 3).to_literal())).relu();
}

std::size_t copies(const executable& e) {
  std::size_t n = 0;
  for (const step_info& s : e.report().steps) n += s.copy;
  return n;
}

constexpr tolerance close{1e-4, 1e-4};

TEST(images, a_residual_network) {
  const auto make = [](builder& b) {
    value x = layer(b, b.input("x", dtype::f32, {2, 3, 33, 30}), 32, 7, 2);
    x = x.pool({.lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}});
    const value shortcut = layer(b, x, 48, 1);
    x = layer(b, layer(b, x, 20, 3), 48, 1) + shortcut;
    x = layer(b, x.relu(), 40, 3, 2);
    x = x.pool({.mode = op::pooling_mode::average, .lengths = {2, 2}, .stride = {1, 1}, .pads = {0, 1, 0, 1}});
    b.output(x.reduce_mean({2, 3}).flatten(1));
  };
  expect_same(make, close);
  EXPECT_EQ(copies(compile_eigen(make)), 0u);
}

TEST(images, branches_write_into_their_concatenation) {
  const auto make = [](builder& b) {
    const value x = layer(b, b.input("x", dtype::f32, {1, 5, 17, 19}), 24, 3);
    const value parts = layer(b, x, 16, 1).concat(layer(b, layer(b, x, 8, 1), 21, 3), 1);
    const value joined = parts.concat(x.pool({.lengths = {3, 3}, .stride = {1, 1}, .pads = {1, 1, 1, 1}}), 1);
    b.output(layer(b, layer(b, joined, 32, 3), 10, 1).reduce_mean({2, 3}));
  };
  expect_same(make, close);
  EXPECT_EQ(copies(compile_eigen(make)), 0u);
}

TEST(images, means_of_whole_images) {
  // the last one's pixels are summed in chunks
  for (const dims& x : {dims{1, 64, 13, 13}, {3, 48, 7, 5}, {2, 32, 9, 1}, {2, 64, 31, 23}})
    for (const std::int64_t channels : {8, 41, 256, 300}) {
      const auto make = [&](builder& b) {
        b.output(layer(b, layer(b, b.input("x", dtype::f32, x), 64, 3), channels, 1).reduce_mean({2, 3}));
      };
      SCOPED_TRACE(::testing::Message() << x[0].value() << ' ' << channels);
      expect_same(make, close);
      const executable e = compile_eigen(make);
      EXPECT_EQ(e.report().steps.back().kernel, "mean of images");
      EXPECT_EQ(copies(e), 0u);
    }
}

// What reduces whole images or their channels reads either layout, so the convolution before it is NHWC.
TEST(images, a_reduction_reads_nhwc) {
  const auto remarks = [](const auto& reader) {
    const auto make = [&](builder& b) {
      b.output(reader(layer(b, layer(b, b.input("x", dtype::f32, {1, 64, 13, 13}), 64, 3), 200, 1)));
    };
    expect_same(make, close);
    return compile_eigen(make).report().remarks;
  };
  const auto both = ::testing::Contains("2 results are NHWC");
  EXPECT_THAT(remarks([](const value& x) { return x.reduce_mean({2, 3}); }), both);
  EXPECT_THAT(remarks([](const value& x) { return x.reduce_mean({1}); }), both);
  for (const ints& axes : {ints{2}, ints{3}, ints{1, 3}, ints{1, 2, 3}})
    EXPECT_THAT(remarks([&](const value& x) { return x.reduce_mean(axes); }), ::testing::Not(both))
        << axes.size() << " axes from " << axes[0];
  EXPECT_THAT(remarks([](const value& x) { return x.softmax(1); }), ::testing::Not(both));
}

// A norm of all channels and pixels, as exporters spell it over merged dims.
value norm_of_image(builder& b, const value& x, unsigned seed) {
  const dims lens = x.get_shape().lens;
  const dimension all = lens[1] * lens[2] * lens[3];
  const std::int64_t channels = lens[1].value();
  const value y = x.reshape({lens[0], 1, all}).normalize({2}, 1e-5).reshape(lens);
  return y * y.make_along(1, weights(b, {channels}, seed)) + y.make_along(1, weights(b, {channels}, seed + 1));
}

// They leave images as they are laid out.
TEST(images, norms_over_whole_images) {
  for (const dims& lens :
       {dims{1, 5, 61, 57}, {3, 40, 29, 31}, {1, 64, 56, 56}, {8, 33, 30, 17}, {2, 7, 9, 5}, {2, 64, 1, 3000}})
    for (const bool last : {false, true}) {
      const auto make = [&](builder& b) {
        const std::int64_t channels = lens[1].value();
        const auto norm = [&](const value& x, unsigned seed) { return norm_of_image(b, x, seed); };
        value x = layer(b, b.input("x", dtype::f32, lens), channels, 3);
        x = layer(b, norm(x, 5), channels, 1) + norm(x, 7);
        b.output(last ? norm(x, 9) : layer(b, norm(x, 9), 16, 3).reduce_mean({2, 3}));
      };
      SCOPED_TRACE(::testing::Message() << lens[1].value() << " channels, the norm last: " << last);
      expect_same(make, close);
      compile_options alone = plain_options();
      alone.pool = std::make_shared<thread_pool>(1);
      const auto in = random_inputs(make);
      expect_close(compile_eigen(make, alone).run(in)[0], reference_run(make, in)[0], close);
      if (!last && lens[1].value() >= 32) {
        EXPECT_EQ(copies(compile_eigen(make)), 0u);
      }
    }
}

// The result of a norm is an image that a layer reads in NHWC and one that the caller has in NCHW; what it is added to
// has elements of other widths, in NCHW.
TEST(images, norms_that_end_in_both_layouts) {
  const dims lens{1, 64, 56, 56};
  for (const dtype type : {dtype::f32, dtype::f16, dtype::u8, dtype::boolean}) {
    SCOPED_TRACE(to_string(type));
    const auto make = [&](builder& b) {
      const value x = layer(b, b.input("x", dtype::f32, lens), 64, 3), other = b.input("other", type, lens);
      const value y = norm_of_image(b, x, 5) + (type == dtype::f32 ? other : other.convert(dtype::f32));
      b.output(y);
      b.output(layer(b, y, 16, 3).reduce_mean({2, 3}));
    };
    expect_same(make, close);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(images, values_that_others_read_too) {
  expect_same(
      [](builder& b) {
        const value x = layer(b, b.input("x", dtype::f32, {1, 6, 12, 11}), 24, 3);
        const value y = layer(b, x, 24, 3);
        b.output(y);
        b.output(x.softmax(1));
        b.output((y.tanh() * b.input("gate", dtype::f32, {1, 24, 1, 1})).transpose({0, 2, 3, 1}));
        b.output(layer(b, x.sigmoid() * y, 18, 3).slice({.axes = {2}, .starts = {3}, .ends = {9}}));
        b.output(layer(b, x.concat(b.input("z", dtype::f32, {1, 3, 12, 11}), 1), 20, 5).flatten(1));
      },
      close);
}

TEST(images, epilogues_that_are_more_than_sums) {
  expect_same(
      [](builder& b) {
        const value x = layer(b, b.input("x", dtype::f32, {2, 6, 13, 14}), 24, 3);
        const value y = x.conv(weights(b, {24, 24, 3, 3}, 7), {.pads = {1, 1, 1, 1}});
        const value gated = (y.sigmoid() * y * b.input("gate", dtype::f32, {2, 24, 1, 1}) + x).tanh();
        const value z = gated.conv(weights(b, {24, 1, 3, 3}, 8), {.pads = {1, 1, 1, 1}, .group = 24});
        b.output(layer(b, z.max(b.scalar(dtype::f32, -0.5)).min(b.scalar(dtype::f32, 0.75)), 17, 1));
      },
      close);
}

// Sums and clamps that end in something else: bias, second bias, constant, residual, each followed by a gate.
TEST(images, sums_before_other_epilogues) {
  for (const bool network : {false, true})
    expect_same(
        [network](builder& b) {
          value x = b.input("x", dtype::f32, {2, 20, 11, 13});
          if (network) x = layer(b, x, 20, 3);
          const auto bias = [&](unsigned seed) {
            return b.constant(random_argument({dtype::f32, {20}}, seed).to_literal());
          };
          value y = x.conv(weights(b, {20, 20, 3, 3}, 7), {.pads = {1, 1, 1, 1}});
          y = (y.add_along(1, bias(1)) + b.scalar(dtype::f32, 0.25) + x)
                  .add_along(1, b.input("second", dtype::f32, {20}));
          y = y * y.sigmoid();
          value z = y.conv(weights(b, {20, 20, 1, 1}, 8), {}).add_along(1, bias(2)).relu().tanh();
          z = (z + y).conv(weights(b, {24, 20, 1, 1}, 9), {}).max(b.scalar(dtype::f32, -1)).sigmoid();
          b.output(network ? layer(b, z, 12, 3) : z);
        },
        close);
}

TEST(images, sums_before_other_epilogues_of_products) {
  for (const std::int64_t rows : {1, 5, 70})
    expect_same(
        [rows](builder& b) {
          const value x = b.input("x", dtype::f32, {2, rows, 33});
          const auto product = [&](std::int64_t n, unsigned seed) { return x.dot(weights(b, {33, n}, seed)); };
          const value y = (product(70, 1) + b.input("bias", dtype::f32, {70})).gelu();
          b.output(y);
          b.output((product(70, 2) + y).relu().sqrt());
          b.output((product(300, 3) + b.scalar(dtype::f32, 1)).sigmoid() * b.input("gate", dtype::f32, {300}));
        },
        close);
}

// Channels that all pixels share, or all images: a broadcast's strides of 0 are no NHWC.
TEST(images, broadcast_over_pixels_or_images) {
  for (const auto& [from, to] :
       {std::pair(dims{1, 8, 1, 1}, dims{1, 8, 6, 6}), std::pair(dims{1, 8, 1, 1}, dims{3, 8, 1, 1}),
        std::pair(dims{1, 8, 1, 6}, dims{1, 8, 6, 6}), std::pair(dims{2, 8, 1, 1}, dims{2, 8, 5, 1}),
        std::pair(dims{1, 1, 1, 1}, dims{2, 1, 6, 6})})
    expect_same(
        [from = from, to = to](builder& b) {
          const value x = b.broadcast_to(b.input("x", dtype::f32, from), to);
          const std::int64_t in = to[1].value();
          b.output(layer(b, x, 24, 3));
          b.output(layer(b, x, 9, 1));
          b.output(x.conv(weights(b, {in, 1, 3, 3}, 5), {.pads = {1, 1, 1, 1}, .group = in}));
          for (const auto mode : {op::pooling_mode::max, op::pooling_mode::average})
            b.output(x.pool({.mode = mode, .lengths = {3, 3}, .pads = {1, 1, 1, 1}}));
          b.output(b.add(op::lrn{.size = 3, .alpha = 0.3F}, x));
        },
        close);
}

TEST(images, channels_shuffled_between_groups) {
  expect_same(
      [](builder& b) {
        value x = layer(b, b.input("x", dtype::f32, {2, 3, 14, 15}), 24, 3);
        x = x.conv(weights(b, {40, 6, 1, 1}, 5), {.group = 4}).relu();
        x = x.reshape({2, 4, 10, 14, 15}).transpose({0, 2, 1, 3, 4}).reshape({2, 40, 14, 15});
        x = x.conv(weights(b, {40, 1, 3, 3}, 6), {.stride = {2, 2}, .pads = {1, 1, 1, 1}, .group = 40});
        b.output(layer(b, x.conv(weights(b, {20, 10, 1, 1}, 7), {.group = 4}), 9, 1));
      },
      close);
}

// Groups of few channels work in NCHW, the layers around them in NHWC; pooling between them changes the layout.
TEST(images, pooling_between_layouts) {
  for (const auto mode : {op::pooling_mode::max, op::pooling_mode::average})
    for (const std::int64_t size : {31, 40}) {
      const op::pooling down{.mode = mode, .lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 0, 1, 1}};
      const auto make = [&](builder& b) {
        value x = layer(b, b.input("x", dtype::f32, {2, 3, size, size + 5}), 48, 3).pool(down);
        x = x.conv(weights(b, {20, 12, 1, 1}, 5), {.group = 4}).relu();
        x = x.conv(weights(b, {20, 5, 1, 1}, 6), {.group = 4}).relu().pool(down);
        b.output(layer(b, layer(b, x, 64, 1), 9, 3));
      };
      expect_same(make, close);
      std::size_t in_nchw = 0;
      const executable e = compile_eigen(make);
      for (const step_info& s : e.report().steps) in_nchw += s.kernel.find("(im2col)") != std::string::npos;
      EXPECT_EQ(in_nchw, 2U);
      EXPECT_EQ(copies(e), 0U);
    }
}

TEST(images, normalized_responses) {
  for (const std::int64_t size : {1, 4, 5, 40, 300}) {
    SCOPED_TRACE(size);
    const auto make = [size](builder& b) {
      value x = layer(b, b.input("x", dtype::f32, {2, 3, 14, 15}), size == 5 ? 1030 : 27, 3);
      x = b.add(op::lrn{.size = size, .alpha = 0.3F, .bias = 1.5F}, x).pool({.lengths = {3, 3}, .stride = {2, 2}});
      b.output(layer(b, layer(b, x, 20, 3), 9, 1));
    };
    expect_same(make, close);
    EXPECT_EQ(copies(compile_eigen(make)), 0U);
  }
}

// Factors that the passes bring into weights of more than one part, along either dim.
TEST(images, factors_of_large_weights) {
  for (const auto& [out, in] : {std::pair(130, 70), std::pair(9, 1000), std::pair(2, 9000)})
    expect_same(
        [out = out, in = in](builder& b) {
          const auto factors = [&](std::int64_t n, unsigned seed) {
            return b.constant(random_argument({dtype::f32, {n, 1, 1}}, seed).to_literal());
          };
          const value x = b.input("x", dtype::f32, {1, in, 2, 3}) * factors(in, 1);
          b.output(x.conv(weights(b, {out, in, 1, 1}, 2), {}) * factors(out, 3));
        },
        close);
}

// A layer whose weights stay near is filtered; behind a product with many more constants they would come from far.
TEST(images, the_choice_of_winograd_depends_on_all_that_a_program_reads) {
  // which of the two layers changes its method depends on the width of vectors
  const auto make = [](std::int64_t columns) {
    return [columns](builder& b) {
      const auto network = [&](const char* name, std::int64_t extent, std::int64_t in) {
        const value x = layer(b, b.input(name, dtype::f32, {1, 16, extent, extent}), in, 1);
        return layer(b, layer(b, x, 48, 3), 16, 1).reshape({1, 16 * extent * extent});
      };
      b.output(network("x", 4, 24).dot(weights(b, {256, columns}, 4)));
      b.output(network("y", 5, 48));
    };
  };
  for (const std::int64_t columns : {10, 400}) expect_same(make(columns), close);
  const auto filtered = [&](std::int64_t columns) {
    const executable e = compile_eigen(make(columns));
    return std::ranges::count_if(e.report().steps,
                                 [](const step_info& s) { return s.kernel.find("winograd") != std::string::npos; });
  };
  EXPECT_GT(filtered(10), filtered(400));
}

TEST(images, small_ones) {
  std::int64_t channels = 8;
  for (std::int64_t extent = 1; extent <= 9; ++extent)
    for (const std::int64_t kernel : {3, 5}) {
      SCOPED_TRACE(extent);
      expect_same(
          [&](builder& b) {
            const value x = layer(b, b.input("x", dtype::f32, {extent % 3 + 1, channels, extent, 10 - extent}), 24, 1);
            b.output(layer(b, layer(b, x, channels + 19, kernel), 17, kernel));
          },
          close);
      channels = channels % 50 + 7;
    }
}

TEST(images, lines_and_symbolic_sizes) {
  const dimension n = dimension::symbol("n"), h = dimension::symbol("h");
  expect_same(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {2, 5, 40});
        const value y = x.conv(weights(b, {24, 5, 3}, 1), {.pads = {1, 1}}).relu();
        b.output(y.conv(weights(b, {19, 24, 5}, 2), {.stride = {2}, .pads = {2, 2}}).tanh());
      },
      close);
  const auto make = [&](builder& b) {
    const value x = layer(b, b.input("x", dtype::f32, {n, 3, h, 10}), 24, 3);
    b.output(layer(b, layer(b, x, 32, 3) + layer(b, x, 32, 1), 16, 3, 2));
  };
  const executable e = compile_eigen(make);
  workspace w = e.make_workspace();
  for (const auto& [images, rows] : {std::pair(1, 5), std::pair(2, 33), std::pair(0, 3), std::pair(1, 1)}) {
    const std::vector<argument> in{random_argument({dtype::f32, {images, 3, rows, 10}}, 1)};
    const auto expected = reference_run(make, in);
    std::vector<argument> out{argument(expected[0].get_shape())};
    e.run(w, in, out);
    expect_close(out[0], expected[0], close);
  }
}

}  // namespace
}  // namespace kiln::testing

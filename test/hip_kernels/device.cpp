// Tile kernels beside the ops' own computations, where there is a device.
#include <cstring>

#include "hip_kernels/on_device.hpp"
#include "kiln/op/more.hpp"

namespace kiln::testing {
namespace {

TEST_P(tile_kernels_on_device, products) {
  const dtype t = GetParam();
  struct sizes {
    std::int64_t m, n, k;
  };
  for (const sizes z : {sizes{64, 64, 64}, {1, 768, 768}, {37, 45, 51}, {300, 200, 136}, {128, 64, 3072}, {5, 1, 9}}) {
    SCOPED_TRACE(z.m * 1000000 + z.n * 1000 + z.k);
    check([&](builder& b) {
      const auto x = b.input("x", t, {z.m, z.k}), w = b.input("w", t, {z.k, z.n});
      b.output((x.dot(w) + b.input("bias", t, {z.n})).relu() + b.input("r", t, {z.m, z.n}), "y");
    });
    check([&](builder& b) {
      const auto x = b.input("x", t, {2, 3, z.k, z.m}), w = b.input("w", t, {2, 1, z.n, z.k});
      b.output(x.transpose({0, 1, 3, 2}).dot(w.transpose({0, 1, 3, 2})), "transposed");
    });
  }
}

// Rows of a product that is large enough for the platform's library or the widest tiles, beside the same rows alone.
TEST_P(tile_kernels_on_device, large_products) {
  const dtype t = GetParam();
  if (t == dtype::f32) GTEST_SKIP() << "products of 16-bit floats";
  constexpr std::int64_t m = 1024, n = 1024, some = 3;
  for (const std::int64_t k : {std::int64_t{512}, std::int64_t{8192}})
    for (const bool turned : {false, true}) {
      SCOPED_TRACE(std::to_string(k) + (turned ? " turned" : ""));
      const auto make = [&](std::int64_t rows) {
        return [=](builder& b) {
          const auto x = b.input("x", t, {rows, k});
          const auto w = turned ? b.input("w", t, {n, k}).transpose({1, 0}) : b.input("w", t, {k, n});
          b.output((x.dot(w) * b.scalar(t, 0.05f) + b.input("bias", t, {n})).gelu());
        };
      };
      const auto whole = make(m), part = make(some);
      std::vector<argument> inputs = random_inputs(whole);
      builder b;
      whole(b);
      const argument found = compile(b.finish(), hip_target(), plain_options()).run(inputs)[0];
      const auto rows_of = [&](const argument& a, std::int64_t first) {
        argument to(shape(t, {some, a.get_shape().lens[1]}));
        const std::int64_t bytes = to.get_shape().bytes().value();
        std::memcpy(to.data(), a.data() + first * bytes / some, static_cast<std::size_t>(bytes));
        return to;
      };
      const argument x = inputs[0];
      for (const std::int64_t first : {std::int64_t{0}, m - some}) {
        inputs[0] = rows_of(x, first);
        const double bound = t == dtype::f16 ? 8e-3 : 6e-2;
        expect_close(rows_of(found, first), reference_run(part, inputs)[0], {bound, bound * 2});
      }
    }
}

// Batches of more entries than a grid's second dim has blocks.
TEST_P(tile_kernels_on_device, long_batches) {
  const dtype t = GetParam();
  for (const dims& batch : {dims{70001}, dims{3, 70001}, dims{131, 1021}}) {
    SCOPED_TRACE(batch.size());
    check([&](builder& b) {
      dims left = batch, right = batch, both = batch;
      for (const std::int64_t n : {2, 8}) left.push_back(n);
      for (const std::int64_t n : {8, 3}) right.push_back(n);
      for (const std::int64_t n : {2, 3}) both.push_back(n);
      b.output(b.input("x", t, left).dot(b.input("w", t, right)) + b.input("r", t, both));
    });
  }
  check([&](builder& b) {
    const value many = b.input("many", t, {70001, 1, 1, 16});
    b.output(b.add(op::attention{.scale = 0.2f}, many, many, many));
    b.output(b.input("images", t, {70001, 4, 1, 2}).conv(b.input("filters", t, {4, 2, 1, 1}), {.group = 2}));
    b.output(b.add(op::deconvolution{.stride = {2, 2}, .group = 17001}, b.input("channels", t, {1, 17001, 1, 1}),
                   b.input("taps", t, {17001, 1, 2, 2})));
  });
}

// Counted, of a tile, of several, and more than one sorts.
TEST_P(tile_kernels_on_device, best_elements) {
  const dtype t = GetParam();
  for (const bool largest : {false, true})
    check([&](builder& b) {
      for (const std::int64_t extent : {100, 1000, 5000}) {
        const value x = b.input("x" + std::to_string(extent), t, {3, extent, 2});
        for (const std::int64_t k : {1, 50, 99}) {
          const value best = b.add(op::topk{.k = k, .axis = 1, .largest = largest}, x);
          b.output(best), b.output(best.result(1));
        }
      }
      b.output(b.add(op::topk{.k = 9999, .largest = largest}, b.input("all", t, {2, 9999})).result(1));
      for (const std::int64_t k : {1, 700}) {  // selected from parts, of one row and of neighboring ones
        b.output(
            b.add(op::topk{.k = k, .largest = largest}, b.input("long" + std::to_string(k), t, {70001})).result(1));
        b.output(
            b.add(op::topk{.k = k, .axis = 0, .largest = largest}, b.input("tall" + std::to_string(k), t, {9001, 19}))
                .result(1));
      }
    });
}

// Products of images whose channels lie last, as blocks that work tile after tile compute them: with a shortcut, with
// windows, and by phases.
TEST_P(tile_kernels_on_device, images_with_channels_last) {
  const dtype t = GetParam();
  const auto image = [&](builder& b, const char* name, const dims& lens) {
    return b.input(name, t, lens).transpose({0, 3, 1, 2});
  };
  const auto stored = [](const value& y) { return y.transpose({0, 2, 3, 1}); };
  const auto filters = [&](builder& b, const dims& lens) {
    return b.constant(literal(shape(t, lens), constant_bytes(shape(t, lens))));
  };
  for (const std::int64_t count : {64, 136, 256})
    check([&](builder& b) {
      const value x = image(b, "x", {2, 33, 35, 64}), bias = b.input("bias", t, {count, 1, 1});
      b.output(stored((x.conv(filters(b, {count, 64, 1, 1})) + bias + image(b, "r", {2, 33, 35, count})).relu()));
      b.output(stored((x.conv(filters(b, {count, 64, 3, 3}), {.pads = {1, 1, 1, 1}}) + bias).relu()));
      b.output(stored(x.conv(filters(b, {count, 64, 3, 3}), {.stride = {2, 2}, .pads = {1, 1, 1, 1}})));
    });
  check([&](builder& b) {
    const op::deconvolution twice{.stride = {2, 2}, .pads = {1, 1, 1, 1}};
    b.output(stored(b.add(twice, image(b, "small", {9, 45, 47, 64}), filters(b, {64, 8, 4, 4}))));
  });
  // lines of the result that the copy unit writes, of an operand whose pixels begin between words
  check([&](builder& b) {
    const value y = image(b, "x", {2, 33, 35, 64}).conv(filters(b, {33, 64, 1, 1}), {});
    const value sum = y + image(b, "r", {2, 33, 35, 33});
    b.output(stored(sum.concat(image(b, "more", {2, 33, 35, 7}), 1)));
  });
}

TEST_P(tile_kernels_on_device, convolutions) {
  const dtype t = GetParam();
  struct sizes {
    std::int64_t batch, channels, filters, size, kernel, stride, dilation, group;
  };
  for (const sizes z : {sizes{1, 16, 32, 12, 3, 1, 1, 1},
                        {2, 3, 16, 23, 7, 2, 1, 1},
                        {2, 64, 64, 14, 1, 1, 1, 1},
                        {1, 64, 32, 15, 1, 2, 1, 1},
                        {2, 24, 24, 11, 3, 1, 2, 24},
                        {1, 32, 64, 9, 3, 2, 1, 4},
                        {1, 256, 64, 7, 3, 1, 1, 1},
                        {3, 5, 7, 6, 3, 1, 1, 1}}) {
    SCOPED_TRACE(z.channels * 1000000 + z.filters * 1000 + z.size);
    for (const bool constant : {false, true})
      check([&](builder& b) {
        const shape weights(t, {z.filters, z.channels / z.group, z.kernel, z.kernel});
        const auto x = b.input("x", t, {z.batch, z.channels, z.size, z.size});
        value w;
        if (constant) {
          w = b.constant(literal(weights, constant_bytes(weights)));
        } else {
          w = b.input("w", t, weights.lens);
        }
        const op::convolution conv{.stride = {z.stride, z.stride},
                                   .dilation = {z.dilation, z.dilation},
                                   .pads = {z.kernel / 2, z.kernel / 2, z.kernel / 2, z.kernel / 2},
                                   .group = z.group};
        const auto y = x.conv(w, conv);
        b.output((y + b.input("bias", t, {z.filters, 1, 1})).relu() + b.input("r", t, y.get_shape().lens));
      });
  }
}

// Of so many images that blocks work tile after tile, beside the first and the last image alone.
TEST_P(tile_kernels_on_device, convolutions_of_many_images) {
  const dtype t = GetParam();
  if (t == dtype::f32) GTEST_SKIP() << "convolutions of 16-bit floats";
  struct sizes {
    std::int64_t batch, channels, filters, size, kernel, stride;
    bool backwards;
  };
  for (const sizes z : {sizes{70, 64, 64, 28, 3, 1, false},
                        {70, 128, 72, 29, 3, 2, false},
                        {70, 64, 128, 28, 3, 1, false},
                        {40, 3, 64, 64, 7, 2, false},
                        {70, 3, 24, 64, 7, 2, false},  // copied with eight channels, and lines of a box
                        {70, 3, 24, 64, 3, 2, false},  // and lines of a window
                        {20, 5, 16, 60, 5, 1, false},
                        {70, 64, 256, 28, 1, 1, false},
                        {150, 256, 264, 7, 3, 1, false},
                        {60, 64, 64, 20, 4, 2, true}}) {
    SCOPED_TRACE(z.channels * 1000000 + z.filters * 1000 + z.size);
    const auto make = [&](std::int64_t batch) {
      return [=](builder& b) {
        const auto x = b.input("x", t, {batch, z.size, z.size, z.channels}).transpose({0, 3, 1, 2});
        const shape weights(
            t, {z.backwards ? z.channels : z.filters, z.backwards ? z.filters : z.channels, z.kernel, z.kernel});
        const value w = b.constant(literal(weights, constant_bytes(weights)));
        const std::int64_t pad = z.backwards ? 1 : z.kernel / 2;
        const value y =
            z.backwards ? b.add(op::deconvolution{.stride = {z.stride, z.stride}, .pads = {pad, pad, pad, pad}}, x, w)
                        : x.conv(w, {.stride = {z.stride, z.stride}, .pads = {pad, pad, pad, pad}});
        const dims lens = y.get_shape().lens;
        const value r = b.input("r", t, {batch, lens[2], lens[3], lens[1]}).transpose({0, 3, 1, 2});
        const value out = (y * b.scalar(t, 0.05f) + b.input("bias", t, {z.filters, 1, 1})).relu() + r;
        b.output(out.transpose({0, 2, 3, 1}));
      };
    };
    const auto image_of = [&](const argument& a, std::int64_t image) {
      dims lens = a.get_shape().lens;
      lens[0] = 1;
      argument to(shape(t, lens));
      const std::int64_t bytes = to.get_shape().bytes().value();
      std::memcpy(to.data(), a.data() + image * bytes, static_cast<std::size_t>(bytes));
      return to;
    };
    const auto whole = make(z.batch), one = make(1);
    const std::vector<argument> inputs = random_inputs(whole);
    builder b;
    whole(b);
    const argument found = compile(b.finish(), hip_target(), plain_options()).run(inputs)[0];
    for (const std::int64_t image : {std::int64_t{0}, z.batch - 1}) {
      std::vector<argument> some = inputs;
      for (const std::size_t k : {0, 1}) some[k] = image_of(inputs[k], image);
      const double bound = t == dtype::f16 ? 8e-3 : 6e-2;
      expect_close(image_of(found, image), reference_run(one, some)[0], {bound, bound * 2});
    }
  }
}

TEST_P(tile_kernels_on_device, volumes_and_transposed_convolutions) {
  const dtype t = GetParam();
  check([&](builder& b) {
    const op::convolution conv{.stride = {1, 2, 1}, .pads = {1, 0, 1, 1, 1, 0}, .group = 2};
    const auto y = b.input("x", t, {2, 8, 5, 9, 7}).conv(b.input("w", t, {6, 4, 3, 3, 2}), conv);
    b.output((y + b.input("bias", t, {6, 1, 1, 1})).relu());
  });
  for (const std::int64_t group : {1, 2})
    for (const bool constant : {false, true})
      check([&](builder& b) {
        const op::deconvolution two{
            .stride = {2, 3}, .dilation = {1, 2}, .output_padding = {1, 0}, .pads = {1, 0, 1, 2}, .group = group};
        const auto weights = [&](const char* name, const dims& lens) {
          return constant ? b.constant(literal(shape(t, lens), constant_bytes(shape(t, lens))))
                          : b.input(name, t, lens);
        };
        b.output(b.add(two, b.input("x", t, {2, 16, 7, 9}), weights("w", {16, 8, 4, 3})).relu());
        // places and taps that divide by the stride are worked apart
        const op::deconvolution even{.stride = {2, 3}, .pads = {1, 2, 1, 1}, .group = group};
        b.output(b.add(even, b.input("even", t, {2, 16, 5, 4}), weights("fours", {16, 8, 4, 6})));
        const auto last = b.input("last", t, {2, 5, 4, 16}).transpose({0, 3, 1, 2});
        b.output(b.add(even, last, weights("sixes", {16, 8, 2, 6})).transpose({0, 2, 3, 1}));
        const auto part = b.add(even, last, weights("eights", {16, 8, 2, 6}));  // of pixels that lie farther apart
        b.output(part.concat(part.slice({{1}, {0}, {4}, {}}).relu(), 1).transpose({0, 2, 3, 1}));
        b.output(b.add(op::deconvolution{.stride = {2}, .group = group}, b.input("row", t, {1, 4, 9}),
                       weights("taps", {4, 3, 3})));
        // phases of one row, whose places are as far apart as those of one image
        b.output(b.add(op::deconvolution{.stride = {1, 2}, .group = group}, b.input("wide", t, {1, 4, 5, 6}),
                       weights("twos", {4, 8, 1, 2})));
        b.output(b.add(op::deconvolution{.stride = {1, 2, 2}, .group = group}, b.input("volume", t, {1, 4, 3, 4, 5}),
                       weights("cubes", {4, 3, 2, 3, 3})));
        // phases of different taps, some of them without any, over places that strides don't divide
        const auto more = b.input("more", t, {2, 128, 5, 9});
        b.output(b.add(op::deconvolution{.stride = {2, 2}, .pads = {1, 1, 1, 1}, .group = group}, more,
                       weights("threes", {128, 16, 3, 3})));
        b.output(b.add(op::deconvolution{.stride = {3, 2}, .output_padding = {1, 0}, .group = group}, more,
                       weights("skips", {128, 8, 2, 1})));
        b.output(b.add(op::deconvolution{.stride = {2, 2, 2}, .group = group}, b.input("block", t, {2, 32, 3, 4, 5}),
                       weights("pairs", {32, 24, 2, 2, 2})));
      });
}

// Recurrent layers, where a cluster holds the matrix, as factors or as numbers, and where a launch makes each step.
TEST_P(tile_kernels_on_device, recurrences) {
  const dtype t = GetParam();
  using f = op::cell_function;
  struct sizes {
    std::int64_t steps, batch, hidden;
  };
  for (const sizes z : {sizes{9, 3, 64}, {5, 11, 256}, {6, 8, 512}, {3, 2, 40}, {4, 9, 96}, {4, 3, 333}, {2, 5, 1200}})
    for (const op::cell_kind kind : {op::cell_kind::plain, op::cell_kind::gru, op::cell_kind::lstm})
      for (const bool other : {false, true}) {
        SCOPED_TRACE(std::to_string(z.hidden) + " " + std::to_string(static_cast<int>(kind)) + (other ? " other" : ""));
        op::recurrent r{.cell = kind, .functions = {f::tanh}, .alpha = {0}, .beta = {0}, .reverse = other};
        if (kind != op::cell_kind::plain) r.functions = {f::sigmoid, f::tanh}, r.alpha = {0, 0}, r.beta = {0, 0};
        if (kind == op::cell_kind::lstm) r.functions.push_back(f::tanh), r.alpha.push_back(0), r.beta.push_back(0);
        r.linear_before_reset = kind == op::cell_kind::gru && !other;
        r.coupled = kind == op::cell_kind::lstm && other;
        const std::int64_t all = r.gates() * z.hidden;
        check([&](builder& b) {
          const value small = b.scalar(t, 1.0f / 16);
          std::vector<std::int64_t> lengths(static_cast<std::size_t>(z.batch), z.steps);
          lengths.front() = other ? 0 : z.steps - 1;
          small_vector<value> in{b.input("x", t, {z.steps, z.batch, all}), b.input("w", t, {z.hidden, all}) * small,
                                 b.input("bias", t, {all}), b.input("first", t, {z.batch, z.hidden}),
                                 b.constant(literal::of<std::int64_t>({dtype::i64, {z.batch}}, lengths))};
          if (kind == op::cell_kind::lstm)
            in.push_back(b.input("cell", t, {z.batch, z.hidden})), in.push_back(b.input("peep", t, {3 * z.hidden}));
          const value y = b.add(r, in);
          for (unsigned k = 0; k < (kind == op::cell_kind::lstm ? 3u : 2u); ++k) b.output(y.result(k));
        });
      }
}

// Poolings of images whose channels lie last, in runs and one by one, and of such whose channels lie first.
TEST_P(tile_kernels_on_device, poolings) {
  const dtype t = GetParam();
  for (const std::int64_t channels : {1, 6, 16})
    for (const bool last : {false, true})
      for (const op::pooling_mode mode : {op::pooling_mode::max, op::pooling_mode::average})
        check([&](builder& b) {
          const auto x = last ? b.input("x", t, {2, 9, 11, channels}).transpose({0, 3, 1, 2})
                              : b.input("x", t, {2, channels, 9, 11});
          const auto w = b.input("w", t, {8, channels, 1, 1});
          const op::pooling pool{
              .mode = mode, .lengths = {3, 2}, .stride = {2, 1}, .dilation = {1, 2}, .pads = {1, 0, 0, 1}};
          b.output(b.add(pool, x).conv(w, {}), "between");
          b.output(last ? b.add(pool, x + b.scalar(t, 1.0f)).transpose({0, 2, 3, 1}) : b.add(pool, x));
        });
}

TEST_P(tile_kernels_on_device, a_channel_each) {
  const dtype t = GetParam();
  struct sizes {
    std::int64_t batch, channels, size, kernel, stride, dilation;
  };
  for (const sizes z : {sizes{1, 32, 14, 3, 1, 1},
                        {2, 24, 15, 3, 2, 1},
                        {1, 16, 9, 5, 1, 2},
                        {3, 9, 7, 3, 1, 1},
                        {16, 64, 56, 3, 1, 1}})
    for (const bool last : {false, true}) {
      SCOPED_TRACE(std::to_string(z.channels) + (last ? " last" : ""));
      check([&](builder& b) {
        const shape weights(t, {z.channels, 1, z.kernel, z.kernel});
        const auto x = last ? b.input("x", t, {z.batch, z.size, z.size, z.channels}).transpose({0, 3, 1, 2})
                            : b.input("x", t, {z.batch, z.channels, z.size, z.size});
        const std::int64_t pad = z.kernel / 2;
        const op::convolution conv{.stride = {z.stride, z.stride},
                                   .dilation = {z.dilation, z.dilation},
                                   .pads = {pad, pad, pad, pad},
                                   .group = z.channels};
        const auto w =
            z.batch == 2 ? b.input("w", t, weights.lens) : b.constant(literal(weights, constant_bytes(weights)));
        const auto y = (x.conv(w, conv) + b.input("bias", t, {z.channels, 1, 1})).relu();
        b.output(last ? y.transpose({0, 2, 3, 1}) : y);
      });
    }
}

INSTANTIATE_TEST_SUITE_P(dtypes, tile_kernels_on_device, ::testing::Values(dtype::f16, dtype::bf16, dtype::f32),
                         [](const auto& at) { return std::string(to_string(at.param)); });

}  // namespace
}  // namespace kiln::testing

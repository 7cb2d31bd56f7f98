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
  dims w(x.get_shape().rank(), dimension(1));
  w[0] = out, w[1] = x.get_shape().lens[1].value() / attributes.group;
  return x.conv(weights(b, std::move(w), 3), attributes);
}

// Steps that apply a prologue; none is left to the reference computation.
std::size_t prologues(const std::function<void(builder&)>& make, std::string_view method = "") {
  std::size_t n = 0;
  const executable e = compile_eigen(make);
  for (const step_info& s : e.report().steps) {
    n += s.kernel.starts_with("prologue+convolution") && s.kernel.find(method) != s.kernel.npos;
    EXPECT_FALSE(s.fallback) << s.kernel;
  }
  return n;
}

void expect_prologues(const std::function<void(builder&)>& make, std::size_t count) {
  expect_same(make, {5e-5, 5e-5});
  EXPECT_EQ(prologues(make), count);
}

struct image {
  const char* name;
  dims x;
  std::int64_t out;
  bool last = false;  // channels
};
const image images[] = {{"channels fill vectors", {1, 64, 14, 14}, 128},
                        {"many pixels", {1, 48, 40, 37}, 96},
                        {"many channels", {1, 700, 7, 7}, 64},
                        {"few channels", {2, 5, 9, 7}, 11},
                        {"more outputs than pixels", {1, 32, 5, 5}, 300},
                        {"one pixel", {3, 20, 1, 1}, 33},
                        {"signals", {2, 24, 50}, 20},
                        {"NHWC", {1, 64, 14, 14}, 128, true},
                        {"NHWC, many pixels", {2, 48, 40, 37}, 96, true},
                        {"NHWC, many channels", {1, 700, 7, 7}, 64, true},
                        {"NHWC, part of a vector", {2, 37, 9, 7}, 33, true}};

// Channels lie last behind a convolution that gains from that. Its result is read by another step too: else what
// follows were its epilogue.
value nhwc(builder& b, const value& x) {
  const value y = conv1x1(b, x, x.get_shape().lens[1].value());
  b.output(y.reduce_mean({2, 3}));
  return y;
}

void expect_prologue(const std::function<value(builder&, const value&)>& change) {
  for (const image& i : images) {
    SCOPED_TRACE(i.name);
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, i.x);
      b.output(conv1x1(b, change(b, i.last ? nhwc(b, x) : x), i.out));
    };
    expect_prologues(make, 1);
    if (i.last)
      EXPECT_EQ(prologues(make, "(nhwc_gemm)"), 1u);
    else
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

// Factors that the run computes, for each channel of each image. Large images take them as a prologue where vectors
// multiply, as they do for few outputs.
TEST(convolution_prologue, squeeze_and_excitation) {
  const image large[] = {{"channels fill vectors", {1, 64, 40, 37}, 20},
                         {"a part of a vector", {1, 37, 50, 41}, 11},
                         {"two images", {2, 70, 30, 21}, 31},
                         {"signals", {3, 33, 1050}, 20},
                         {"NHWC", {1, 64, 40, 37}, 20, true},
                         {"NHWC, a part of a vector", {1, 37, 50, 41}, 11, true},
                         {"NHWC, two images", {2, 70, 30, 21}, 31, true},
                         {"NHWC, many channels", {3, 1300, 5, 5}, 28, true}};
  for (const image& i : large) {
    SCOPED_TRACE(i.name);
    const auto make = [&](builder& b) {
      const value in = b.input("x", dtype::f32, i.x), x = i.last ? nhwc(b, in) : in;
      ints axes{2};
      if (i.x.size() == 4) axes.push_back(3);
      const value gate = conv1x1(b, x.reduce_mean(axes), i.x[1].value()).sigmoid();
      b.output(conv1x1(b, x * gate, i.out));
    };
    expect_prologues(make, 1);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(convolution_prologue, gates_of_small_images_stay_steps) {
  expect_prologues(
      [](builder& b) {
        const value x = nhwc(b, b.input("x", dtype::f32, {2, 64, 14, 14}));
        b.output(conv1x1(b, x * conv1x1(b, x.reduce_mean({2, 3}), 64).sigmoid(), 20));
      },
      0);
}

TEST(convolution_prologue, gates_of_all_images_and_gates_apart) {
  const auto gated = [](const dims& lens, auto&& view) {
    return [=](builder& b) {
      const value x = nhwc(b, b.input("x", dtype::f32, {3, 40, 29, 27}));
      b.output(conv1x1(b, (x * view(b.input("gate", dtype::f32, lens)) * 1.0F).relu(), 30));
    };
  };
  expect_prologues(gated({1, 40, 1, 1}, [](const value& g) { return g; }), 1);
  expect_prologues(gated({3, 40, 1, 1}, [](const value& g) { return g; }), 1);
  // factors of adjacent channels lie apart
  expect_prologues(gated({40, 3, 1, 1}, [](const value& g) { return g.transpose({1, 0, 2, 3}); }), 1);
  expect_prologues(gated({3, 1, 1, 1}, [](const value& g) { return g; }), 1);  // a number for each image
  expect_prologues(gated({3, 40, 29, 1}, [](const value& g) { return g; }), 0);
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

TEST(convolution_prologue, no_channels) {
  for (const dims& lens : {dims{1, 0, 1, 1}, {2, 0, 3, 4}})
    expect_prologues([&](builder& b) { b.output(conv1x1(b, b.input("x", dtype::f32, lens).relu(), 5) + 0.5); }, 1);
}

TEST(convolution_prologue, clip) {
  for (const auto& [low, high] : {std::pair{-0.25, 0.25}, {-INFINITY, 0.5}, {0., 6.}})
    expect_prologue([&](builder& b, const value& x) {
      return b.add(op::clip{}, x * by_channel(b, x, 1), b.scalar(dtype::f32, low), b.scalar(dtype::f32, high));
    });
}

TEST(convolution_prologue, an_epilogue_that_reads_the_same_input) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {1, 32, 10, 10});
    const value y = conv1x1(b, (x * by_channel(b, x, 1) + by_channel(b, x, 2)).relu(), 32);
    b.output((y + by_channel(b, y, 4) + x).relu());
  };
  expect_prologues(make, 1);
  EXPECT_EQ(compile_eigen(make).report().steps.size(), 1u);
}

TEST(convolution_prologue, a_constant_of_the_epilogue_too) {
  expect_prologues(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {1, 32, 10, 10}), c = by_channel(b, x, 1);
        b.output(conv1x1(b, (x + c).relu(), 32) + c);
      },
      1);
}

TEST(convolution_prologue, an_epilogue_that_reads_the_result_of_the_prologue) {
  const std::pair<const char*, std::function<value(builder&, const value&)>> forms[] = {
      {"residual", [](builder& b, const value& y) { return conv1x1(b, y, 32) + y; }},
      {"residual and bound", [](builder& b, const value& y) { return (conv1x1(b, y, 32) + y).relu(); }},
      {"gate", [](builder& b, const value& y) { return y * conv1x1(b, y, 32).sigmoid(); }},
      {"weights", [](builder&, const value& y) { return y.conv(y); }},
  };
  for (const auto& [name, form] : forms)
    for (const bool last : {false, true}) {
      SCOPED_TRACE(::testing::Message() << name << " NHWC: " << last);
      expect_prologues(
          [&](builder& b) {
            const value in = b.input("x", dtype::f32, {32, 32, 1, 1}), x = last ? nhwc(b, in) : in;
            b.output(form(b, (x * by_channel(b, x, 1)).relu()));
          },
          0);
    }
}

TEST(convolution_prologue, weights_of_the_run) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {2, 24, 9, 7});
    b.output((x * by_channel(b, x, 1)).relu().conv(b.input("w", dtype::f32, {40, 24, 1, 1})));
  };
  expect_prologues(make, 1);
}

TEST(convolution_prologue, a_part_of_an_image) {
  for (const op::slice& part : {op::slice{.axes = {0}, .starts = {1}, .ends = {3}},
                                {.axes = {1}, .starts = {4}, .ends = {20}},
                                {.axes = {2}, .starts = {1}, .ends = {8}},
                                {.axes = {3}, .starts = {0}, .ends = {5}}})
    for (const bool last : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "axis " << part.axes[0] << " NHWC: " << last);
      expect_prologues(
          [&](builder& b) {
            const value x = b.input("x", dtype::f32, {3, 24, 9, 7});
            const value y = (last ? nhwc(b, x) : x).slice(part);
            b.output(conv1x1(b, (y * by_channel(b, y, 1) + by_channel(b, y, 2)).relu(), 40));
          },
          1);
    }
}

TEST(convolution_prologue, inputs_that_are_no_numbers) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const image& i : images)
    for (const bool bounded : {false, true}) {
      SCOPED_TRACE(::testing::Message() << i.name << " bounds on both sides: " << bounded);
      const auto make = [&](builder& b) {
        const value in = b.input("x", dtype::f32, i.x), x = i.last ? nhwc(b, in) : in;
        const value y = (x * by_channel(b, x, 1) + by_channel(b, x, 2)).relu();
        b.output(conv1x1(b, bounded ? y.min(b.scalar(dtype::f32, 0.5)) : y, i.out));
      };
      auto inputs = random_inputs(make);
      const std::int64_t n = inputs[0].elements();
      auto* const x = reinterpret_cast<float*>(inputs[0].data());
      for (const auto& [at, special] : {std::pair{n / 7, nan}, {n / 3, infinity}, {n / 2, -infinity}})
        if (at < n) x[at] = special;
      expect_same(make, inputs, {5e-5, 5e-5});
      if (::testing::Test::HasFailure()) return;
    }
}

TEST(convolution_prologue, several_threads) {
  compile_options o = plain_options();
  o.pool = std::make_shared<thread_pool>(4);
  for (const image& i : images) {
    SCOPED_TRACE(i.name);
    const auto make = [&](builder& b) {
      const value in = b.input("x", dtype::f32, i.x), x = i.last ? nhwc(b, in) : in;
      b.output(conv1x1(b, (x * by_channel(b, x, 1) + by_channel(b, x, 2)).relu(), i.out));
    };
    const auto inputs = random_inputs(make);
    const auto found = compile_eigen(make, o).run(inputs), expected = reference_run(make, inputs);
    for (std::size_t k = 0; k < found.size(); ++k) expect_close(found[k], expected[k], {5e-5, 5e-5});
  }
}

TEST(convolution_prologue, in_a_network_whose_images_have_their_nhwc) {
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
  expect_prologues(make, 3);
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

TEST(convolution_prologue, gates_of_extents_that_only_the_run_knows) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {dimension::symbol("n"), 90, dimension::symbol("h"), 24});
    b.output(conv1x1(b, x * conv1x1(b, x.reduce_mean({2, 3}), 90).sigmoid(), 20));
  };
  for (const std::int64_t height : {2, 9, 30})
    expect_same(make, std::vector{random_argument({dtype::f32, {2, 90, height, 24}}, 1)}, {5e-5, 5e-5});
  EXPECT_EQ(prologues(make), 1u);
}

TEST(convolution_prologue, channels_that_only_the_run_knows) {
  const auto make = [](builder& b) {
    const dimension c = dimension::symbol("c");
    b.output(b.input("x", dtype::f32, {1, c, 9, 7}).relu().conv(b.input("w", dtype::f32, {8, c, 1, 1})));
  };
  for (const std::int64_t c : {1, 24})
    expect_same(
        make,
        std::vector{random_argument({dtype::f32, {1, c, 9, 7}}, 1), random_argument({dtype::f32, {8, c, 1, 1}}, 2)},
        {5e-5, 5e-5});
  EXPECT_EQ(prologues(make), 0u);
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
      {"bounds that cross",
       [](builder& b, const value& x) {
         b.output(conv1x1(b, b.add(op::clip{}, x, b.scalar(dtype::f32, 0.5), b.scalar(dtype::f32, 0.25)), 8));
       }},
      {"a lower bound that is no number",
       [](builder& b, const value& x) { b.output(conv1x1(b, x.max(b.scalar(dtype::f32, NAN)), 8)); }},
      {"an upper bound that is no number",
       [](builder& b, const value& x) { b.output(conv1x1(b, x.min(b.scalar(dtype::f32, NAN)).relu(), 8)); }},
      {"another function", [](builder& b, const value& x) { b.output(conv1x1(b, x.tanh(), 8)); }},
      {"a factor behind the bound",
       [](builder& b, const value& x) { b.output(conv1x1(b, x.relu() + by_channel(b, x, 2), 8)); }},
  };
  for (const auto& [name, change] : others) {
    SCOPED_TRACE(name);
    expect_prologues([&](builder& b) { change(b, b.input("x", dtype::f32, {1, 16, 9, 9})); }, 0);
  }
}

}  // namespace
}  // namespace kiln::testing

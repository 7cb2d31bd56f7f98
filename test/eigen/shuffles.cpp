// Shuffled channels and joined branches: results are written where they belong, so that nothing is copied.
#include <gmock/gmock.h>

#include <algorithm>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

constexpr tolerance close{1e-5, 1e-5};

value weights(builder& b, dims lens, unsigned seed) {
  return b.constant(random_argument({dtype::f32, std::move(lens)}, seed, -0.3, 0.3).to_literal());
}

value shuffled(const value& x, std::int64_t parts) {
  const dims lens = x.get_shape().lens;
  dims split{lens[0], parts, lens[1].value() / parts};
  ints axes{0, 2, 1};
  for (std::size_t d = 2; d < lens.size(); ++d) {
    split.push_back(lens[d]);
    axes.push_back(static_cast<std::int64_t>(d + 1));
  }
  return x.reshape(split).transpose(axes).reshape(lens);
}

// A 1x1 convolution in groups; of nine channels each, which leave a part of every kind of vector idle, it works in
// NCHW.
value grouped(builder& b, const value& x, std::int64_t out, std::int64_t groups) {
  dims lens{out, x.get_shape().lens[1].value() / groups};
  for (std::size_t d = 2; d < x.get_shape().rank(); ++d) lens.push_back(1);
  return x.conv(weights(b, lens, static_cast<unsigned>(out)), {.group = groups});
}

value depthwise(builder& b, const value& x, std::int64_t stride = 1) {
  const std::int64_t channels = x.get_shape().lens[1].value();
  return x.conv(weights(b, {channels, 1, 3, 3}, 9),
                {.stride = {stride, stride}, .pads = {1, 1, 1, 1}, .group = channels});
}

value biased(builder& b, const value& x) { return x.add_along(1, weights(b, {x.get_shape().lens[1]}, 4)); }

std::vector<std::string> kernels(const executable& e) {
  std::vector<std::string> out;
  for (const step_info& s : e.report().steps) out.push_back(s.kernel);
  return out;
}
using ::testing::Contains;
using ::testing::Not;

void expect_uncopied(const std::function<void(builder&)>& make) {
  expect_same(make, close);
  EXPECT_THAT(kernels(compile_eigen(make)), Not(Contains("copy")));
}

// As `expect_uncopied`, unless the first step's vectors run over channels, which short ones do where they fill them.
void expect_uncopied_nchw(const std::function<void(builder&)>& make) {
  expect_same(make, close);
  const auto steps = kernels(compile_eigen(make));
  if (steps.front() != "convolution+epilogue (direct_channels)") {
    EXPECT_THAT(steps, Not(Contains("copy")));
  }
}

// Groups and runs of channels that are the same, that divide each other, and that share a part of their channels only.
TEST(shuffles, a_grouped_convolution_writes_its_channels_shuffled) {
  for (const auto& [groups, parts] : {std::pair(4, 4), std::pair(2, 6), std::pair(6, 3), std::pair(4, 6)})
    for (const std::int64_t batch : {1, 3})
      for (const std::int64_t height : {4, 9, 28}) {
        SCOPED_TRACE(std::to_string(groups) + " groups, " + std::to_string(parts) + " runs, " + std::to_string(height));
        expect_uncopied_nchw([&, groups = groups, parts = parts](builder& b) {
          const std::int64_t channels = 18 * groups;
          const value x = b.input("x", dtype::f32, {batch, channels, height, height == 28 ? 30 : 8});
          value y = shuffled(biased(b, grouped(b, x, channels, groups)).relu(), parts);
          y = grouped(b, biased(b, depthwise(b, y)), channels, groups);
          b.output((biased(b, y) + x).relu());
        });
      }
}

// Runs that share few channels with a group are copied: as many small products would gather their pixels each.
TEST(shuffles, runs_of_few_channels_are_copied) {
  for (const auto& [groups, parts] : {std::pair(2, 6), std::pair(4, 6), std::pair(1, 3)}) {
    const auto make = [groups = groups, parts = parts](builder& b) {
      const value x = b.input("x", dtype::f32, {2, 9 * groups, 9, 8});
      b.output(depthwise(b, shuffled(grouped(b, x, 9 * groups, groups).relu(), parts)));
    };
    expect_same(make, close);
    EXPECT_THAT(kernels(compile_eigen(make)), Contains("copy")) << groups << ' ' << parts;
  }
}

TEST(shuffles, epilogues_of_every_kind) {
  const auto check = [](const std::function<value(builder&, const value&)>& epilogue, std::int64_t batch) {
    expect_uncopied([&](builder& b) {
      const value x = b.input("x", dtype::f32, {batch, 24, 9, 8});
      b.output(depthwise(b, shuffled(epilogue(b, grouped(b, x, 36, 4)), 4)));
    });
  };
  for (const std::int64_t batch : {1, 2}) {
    check([](builder&, const value& y) { return y; }, batch);
    check([&](builder& b, const value& y) { return y + b.input("more", dtype::f32, {batch, 36, 9, 8}); }, batch);
    check([](builder&, const value& y) { return y * y.sigmoid(); }, batch);
    check([](builder& b, const value& y) { return biased(b, y).relu().tanh(); }, batch);
    // with an operand whose columns are not evenly spaced the epilogue runs after the product
    check([](builder& b, const value& y) { return y * b.input("row", dtype::f32, {1, 36, 1, 8}); }, batch);
    check([&](builder& b, const value& y) { return y * b.input("rows", dtype::f32, {batch, 1, 9, 1}); }, batch);
  }
}

TEST(shuffles, depthwise_results_and_lines_and_volumes) {
  expect_uncopied([](builder& b) {
    const value x = b.input("x", dtype::f32, {2, 24, 11, 12});
    b.output(grouped(b, shuffled(biased(b, depthwise(b, x, 2)).relu(), 3), 36, 4));
    b.output(depthwise(b, shuffled(depthwise(b, b.input("large", dtype::f32, {1, 8, 90, 100})), 2)));
  });
  expect_uncopied([](builder& b) {
    b.output(grouped(b, shuffled(grouped(b, b.input("line", dtype::f32, {2, 12, 40}), 27, 3), 3), 27, 3));
    b.output(grouped(b, shuffled(grouped(b, b.input("volume", dtype::f32, {2, 12, 3, 4, 5}), 27, 3), 3), 27, 3));
  });
}

TEST(shuffles, where_the_shuffled_value_goes) {
  expect_same(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {2, 24, 9, 8}), y = grouped(b, x, 24, 4), z = grouped(b, x, 48, 4);
        b.output(shuffled(y.relu(), 4));                                  // the caller's buffer
        b.output(shuffled(y, 4));                                         // of a value that is read twice
        b.output(shuffled(z, 4).concat(depthwise(b, x), 1).relu());       // a part of a concatenation
        b.output(shuffled(shuffled(grouped(b, x.relu(), 24, 2), 4), 3));  // another shuffle
        b.output(shuffled(grouped(b, x.neg(), 24, 3), 4).transpose({0, 2, 3, 1}));
      },
      close);
}

TEST(shuffles, a_batch_that_only_the_run_knows) {
  const auto make = [](builder& b) {
    const dimension n = dimension::symbol("n");
    const value x = b.input("x", dtype::f32, {n, 24, 9, 8});
    const value y = grouped(b, depthwise(b, shuffled(grouped(b, x, 36, 4).relu(), 4)), 36, 4);
    b.output(y.relu().concat(x.pool({.mode = op::pooling_mode::average, .lengths = {3, 3}, .pads = {1, 1, 1, 1}}), 1));
  };
  const executable e = compile_eigen(make);
  EXPECT_THAT(kernels(e), Not(Contains("copy")));
  for (const std::int64_t n : {1, 4}) {
    const argument x = random_argument({dtype::f32, {n, 24, 9, 8}}, 7);
    expect_close(e.run({{x}}).at(0), reference_run(make, {{x}}).at(0), close);
  }
}

// In NHWC the channels are interleaved by one copy.
TEST(shuffles, in_nhwc) {
  for (const std::int64_t runs : {2, 3, 4, 8}) {
    const auto make = [runs](builder& b) {
      const value x = b.input("x", dtype::f32, {2, 9, 7, 8});
      const value y = x.conv(weights(b, {runs * 11, 9, 3, 3}, 1), {}).relu();
      b.output(shuffled(y, runs).conv(weights(b, {5, runs * 11, 1, 1}, 2), {}));
    };
    expect_same(make, close);
    const executable e = compile_eigen(make);
    EXPECT_EQ(std::ranges::count(kernels(e), "copy"), 1) << runs;
  }
}

// Half of the channels pass, half are convolved; both are joined and shuffled (ShuffleNet v2; Ma et al., 2018).
TEST(shuffles, units_of_two_branches) {
  for (const std::int64_t groups : {1, 2})
    expect_same(
        [groups](builder& b) {
          value x = grouped(b, b.input("x", dtype::f32, {2, 24, 10, 9}), 24, groups);
          for (int unit = 0; unit < 2; ++unit) {
            const value left = x.slice({.axes = {1}, .starts = {0}, .ends = {12}});
            value right = x.slice({.axes = {1}, .starts = {12}, .ends = {24}});
            right = grouped(b, depthwise(b, grouped(b, right, 12, groups).relu()), 12, groups).relu();
            x = shuffled(left.concat(right, 1), 2);
          }
          b.output(x);
        },
        close);
}

// Branches in NCHW, with a batch: pooling and convolutions write into their concatenation.
TEST(shuffles, branches_in_nchw_write_into_their_concatenation) {
  for (const std::int64_t batch : {1, 3})
    for (const auto mode : {op::pooling_mode::max, op::pooling_mode::average})
      expect_uncopied([&](builder& b) {
        const value x = grouped(b, b.input("x", dtype::f32, {batch, 12, 14, 16}), 36, 4).relu();
        const value y = grouped(b, depthwise(b, x, 2), 36, 4);
        const value pooled = x.pool({.mode = mode, .lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}});
        b.output(grouped(b, pooled.concat(y, 1).relu(), 72, 8));
      });
}

// The same from an image in NHWC: pooling transposes its result into the concatenation.
TEST(shuffles, pooling_from_nhwc_writes_into_a_concatenation_in_nchw) {
  for (const std::int64_t batch : {1, 3})
    expect_uncopied([&](builder& b) {
      const value x = b.input("x", dtype::f32, {batch, 14, 16, 36}).transpose({0, 3, 1, 2});
      const value y = grouped(b, b.input("y", dtype::f32, {batch, 12, 7, 8}), 36, 4);
      const value pooled = x.pool({.lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}});
      b.output(grouped(b, pooled.concat(y, 1), 72, 8));
    });
}

}  // namespace
}  // namespace kiln::testing

#include "kiln/quantize/smooth.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/graph/builder.hpp"
#include "pass/evaluate.hpp"
#include "quantize/message_of.hpp"
#include "quantize/results.hpp"

namespace kiln::quantize {
namespace {

using test::count_of;
using test::message_of;
using test::sqnr;
using ::testing::HasSubstr;

// A norm whose scale makes three of its channels some hundred times as great as the others, read by two products, and
// a third product after them. `residual`: something else reads the norm, too.
program outliers(bool residual) {
  builder b;
  test::dice d{3};
  const auto weights = [&](const dims& lens) { return b.constant(test::random_literal({dtype::f32, lens}, d)); };
  std::vector<float> scale(32, 1.0F);
  scale[3] = 150, scale[17] = -90, scale[30] = 200;
  const value x = b.input("x", dtype::f32, {dimension::symbol("n", 1, 64), 32});
  b.label = text("norm");
  const value norm = x.normalize({-1}) * b.constant<float>(dtype::f32, {32}, scale) + weights({32});
  b.label = text("query");
  const value q = norm.dot(weights({32, 24}));
  b.label = text("key");
  const value k = norm.dot(weights({32, 24}));
  b.label = text("sum");
  value y = (q + k).relu();
  b.label = text("last");
  y = y.dot(weights({24, 32}));
  b.output(residual ? y + norm : y, "y");
  return prepared(b.finish());
}
argument rows(unsigned seed) {
  test::dice d{seed};
  return argument(test::random_literal({dtype::f32, {40, 32}}, d));
}
calibration_data samples() {
  return [seed = 10u]() mutable -> std::optional<sample> {
    if (seed == 14) return std::nullopt;
    return sample{{"x", rows(seed++)}};
  };
}
std::vector<float> run(const program& p) { return test::first_result(p, rows(99), eigen_target()); }
std::size_t counted(const pass_note& note, std::string_view what) {
  for (const auto& e : note.counts.entries)
    if (e.name == what) return e.count;
  return 0;
}
ranges channels_of(const program& p) {
  return calibrate(p, values_to_smooth(p), eigen_target(), samples(), channel_calibration());
}
std::vector<float> in_bytes(const program& p) {
  return run(to_int8(p, calibrate(p, values_to_quantize(p), eigen_target(), samples())).graph);
}

TEST(smooth, computes_the_same) {
  for (const bool residual : {false, true}) {
    const program p = outliers(residual);
    EXPECT_EQ(values_to_smooth(p).size(), 2u);  // the norm, once, and the sum
    const auto exact = run(p);
    for (const double alpha : {0.0, .5, .9, 1.0})
      for (const bool fold : {true, false}) {
        const auto same = run(smoothed(p, channels_of(p), {alpha, fold}).graph);
        EXPECT_GT(sqnr(exact, same), 100) << alpha;
      }
  }
}

TEST(smooth, planted_outliers_cost_less) {
  for (const bool residual : {false, true}) {
    const program p = outliers(residual), q = smoothed(p, channels_of(p)).graph;
    // what the products alone say: the residual is in floats
    const auto exact = run(p), plain = in_bytes(p), smooth = in_bytes(q);
    EXPECT_GT(sqnr(exact, smooth), sqnr(exact, plain) + 3) << residual;
  }
}

TEST(smooth, folds_into_what_makes_a_value) {
  const program p = outliers(false);
  const std::size_t products = count_of(p, "mul");
  const quantized_program folded = smoothed(p, channels_of(p));
  EXPECT_EQ(count_of(folded.graph, "mul"), products + 1);  // the sum is after relu, which nothing folds through
  EXPECT_EQ(counted(folded.note, "folded"), 1u);
  EXPECT_EQ(count_of(smoothed(p, channels_of(p), {.fold = false}).graph, "mul"), products + 2);
  const program read_twice = outliers(true);
  EXPECT_EQ(counted(smoothed(read_twice, channels_of(read_twice)).note, "folded"), 0u);
}

TEST(smooth, smoothed_values_have_names) {
  const program p = outliers(true), q = smoothed(p, channels_of(p)).graph;
  std::vector<std::string> names;
  for (const watched_value& w : values_to_quantize(q)) names.push_back(w.name);
  EXPECT_EQ(names, (std::vector<std::string>{"norm_smoothed", "sum_smoothed"}));
}

TEST(smooth, mistakes_are_named) {
  const program p = outliers(false);
  EXPECT_THAT(message_of([&] { smoothed(p, channels_of(p), {.alpha = 1.5}); }), HasSubstr("alpha"));
  EXPECT_THAT(message_of([&] { smoothed(p, calibrate(p, values_to_smooth(p), eigen_target(), samples())); }),
              HasSubstr("ranges of the channels"));
}

}  // namespace
}  // namespace kiln::quantize

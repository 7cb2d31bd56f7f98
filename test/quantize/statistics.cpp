#include "kiln/quantize/statistics.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kiln/quantize/methods.hpp"

namespace kiln::quantize {
namespace {

using ::testing::ElementsAre;

argument floats(const dims& lens, const std::vector<float>& values) {
  return argument::of<float>(lens, std::span<const float>(values));
}

argument as_type(dtype t, const std::vector<double>& values) {
  argument a(shape{t, {static_cast<std::int64_t>(values.size())}});
  encode(t, values.data(), a.data(), a.elements());
  return a;
}

TEST(statistics, every_float_type_counts) {
  const std::vector<double> values = {-2, 0.5, 0, 1.5, -0.5};
  for (const dtype t :
       {dtype::f64, dtype::f32, dtype::f16, dtype::bf16, dtype::f8e4m3fn, dtype::f8e5m2, dtype::f4e2m1}) {
    const value_counts c = count_values(tensor_of(as_type(t, values)));
    EXPECT_EQ(c.finite, 5) << to_string(t);
    EXPECT_EQ(c.low, -2) << to_string(t);
    EXPECT_EQ(c.high, 1.5) << to_string(t);
    EXPECT_EQ(c.least_magnitude, 0) << to_string(t);
    EXPECT_EQ(c.sum, -0.5) << to_string(t);
    EXPECT_EQ(c.sum_of_squares, 6.75) << to_string(t);
  }
}

TEST(statistics, integers_are_refused) {
  argument a(shape{dtype::i32, {3}});
  tensor_statistics s;
  EXPECT_THROW(s.add(tensor_of(a)), error);
}

// Every length, so that vectors, their rests and the borders of blocks are all met, with what is not finite anywhere.
TEST(statistics, vectors_count_as_one_by_one) {
  std::mt19937 engine(7);
  std::normal_distribution<float> draw(0.3f, 2);
  for (std::int64_t n : {0, 1, 3, 4, 5, 31, 1023, 1024, 1025, 5000}) {
    for (const bool broken : {false, true}) {
      argument a(shape{dtype::f32, {n}});
      value_counts expected;
      std::int64_t i = 0;
      for (float& v : a.as<float>()) {
        v = draw(engine);
        if (broken && i % 7 == 2) v = std::numeric_limits<float>::quiet_NaN();
        if (broken && i % 11 == 4) v = -std::numeric_limits<float>::infinity();
        ++i;
        if (std::isnan(v)) expected.nans++;
        if (std::isinf(v)) expected.infinities++;
        if (!std::isfinite(v)) continue;
        const auto d = static_cast<double>(v);
        expected.low = expected.finite ? std::min(expected.low, d) : d;
        expected.high = expected.finite ? std::max(expected.high, d) : d;
        expected.least_magnitude = expected.finite ? std::min(expected.least_magnitude, std::fabs(d)) : std::fabs(d);
        expected.sum += d;
        ++expected.finite;
      }
      const value_counts found = count_values(tensor_of(a));
      EXPECT_EQ(found.finite, expected.finite) << n;
      EXPECT_EQ(found.nans, expected.nans) << n;
      EXPECT_EQ(found.infinities, expected.infinities) << n;
      EXPECT_EQ(found.low, expected.low) << n;
      EXPECT_EQ(found.high, expected.high) << n;
      EXPECT_EQ(found.least_magnitude, expected.least_magnitude) << n;
      EXPECT_NEAR(found.sum, expected.sum, 1e-9 * (1 + std::fabs(expected.sum))) << n;
    }
  }
}

TEST(statistics, strides_choose_what_counts) {
  std::vector<float> memory(24);
  std::iota(memory.begin(), memory.end(), 0.0f);
  // every other column of 4 x 6, transposed, without the first row
  const argument view(shape{dtype::f32, {3, 3}, {2, 6}}, memory.data() + 6);
  tensor_statistics s({.axis = 0});
  s.add(tensor_of(view));
  EXPECT_EQ(s.whole(), (range{6, 22}));
  EXPECT_THAT(s.channels(), ElementsAre(range{6, 18}, range{8, 20}, range{10, 22}));
  EXPECT_EQ(s.counts().finite, 9);
}

TEST(statistics, channels_stay_as_many) {
  tensor_statistics s({.axis = 1});
  s.add(tensor_of(floats({1, 2, 2}, {1, 2, 3, 4})));
  s.add(tensor_of(floats({2, 2, 1}, {-1, 5, 0, 6})));
  EXPECT_THAT(s.channels(), ElementsAre(range{-1, 2}, range{3, 6}));
  EXPECT_THROW(s.add(tensor_of(floats({1, 3}, {1, 2, 3}))), error);
  EXPECT_THROW(s.add(tensor_of(floats({2}, {1, 2}))), error);
}

TEST(statistics, mean_and_deviation) {
  tensor_statistics s;
  s.add(tensor_of(floats({2}, {1, 3})));
  s.add(tensor_of(floats({3}, {5, 7, 4})));
  EXPECT_DOUBLE_EQ(s.mean(), 4);
  EXPECT_DOUBLE_EQ(s.deviation(), 2);
}

TEST(statistics, nothing_seen_is_0_to_0) {
  tensor_statistics s({.bins = 16});
  s.add(tensor_of(argument(shape{dtype::f32, {0, 4}})));
  EXPECT_EQ(s.whole(), (range{0, 0}));
  calibration_options o;
  o.method = calibration_method::percentile;
  EXPECT_EQ(choose_range(s, o).whole, (range{0, 0}));
}

histogram of(std::initializer_list<std::vector<float>> samples, std::size_t bins, histogram::domain d) {
  histogram h(bins, d);
  for (const std::vector<float>& v : samples) {
    const value_counts c = count_values(tensor_of(floats({static_cast<std::int64_t>(v.size())}, v)));
    h.widen({c.low, c.high}, c.least_magnitude);
    h.add(std::span<const float>(v));
  }
  return h;
}

TEST(histogram, bins_are_added_on_both_sides) {
  const histogram h = of({{-1, -0.4f, 0, 1}, {2.2f}}, 4, histogram::domain::values);
  EXPECT_THAT(h.counts(), ElementsAre(0, 0, 0, 1, 1, 1, 1, 0, 0, 1));
  EXPECT_EQ(h.edge(0), -2.5);
  EXPECT_EQ(h.edge(10), 2.5);
}

TEST(histogram, zeros_before_anything_else_stay) {
  EXPECT_THAT(of({{0, 0}, {-2, 1}}, 4, histogram::domain::values).counts(), ElementsAre(1, 0, 2, 1));
  EXPECT_THAT(of({{0, 0}, {-2, 1}}, 4, histogram::domain::magnitudes).counts(), ElementsAre(2, 0, 1, 1));
}

TEST(histogram, magnitudes_below_the_first_bin_count_there) {
  const histogram h = of({{-2, 4}, {1, 5}}, 2, histogram::domain::magnitudes);
  EXPECT_THAT(h.counts(), ElementsAre(2, 1, 1));
  EXPECT_EQ(h.edge(0), 2);
  EXPECT_EQ(h.edge(3), 5);
}

// A range that grows without end costs no more memory, and no value is lost.
TEST(histogram, growth_is_bounded) {
  for (const auto d : {histogram::domain::values, histogram::domain::magnitudes})
    for (const std::size_t bins : {2u, 3u, 127u, 128u, 2048u}) {
      histogram h(bins, d);
      float v = 1e-30f;
      for (int i = 0; i < 60; ++i, v *= 9) {
        const float pair[] = {v, -v / 2};
        h.widen({-v / 2, v}, v / 2);
        h.add(std::span<const float>(pair));
      }
      EXPECT_LE(h.counts().size(), h.most_bins());
      EXPECT_EQ(h.total(), 120u);
      EXPECT_GE(h.edge(h.counts().size()), static_cast<double>(v / 9));
    }
}

TEST(histogram, magnitudes_beyond_doubles_are_an_error) {
  histogram h(16, histogram::domain::values);
  EXPECT_THROW(h.widen({-1e300, 0}, 1e300), error);
}

}  // namespace
}  // namespace kiln::quantize

#include "driver/compare.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace kiln::driver {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr float infinity = std::numeric_limits<float>::infinity();

template <class T> argument vector_of(const std::vector<T>& values) {
  return argument::of<T>({static_cast<std::int64_t>(values.size())}, std::span<const T>(values));
}

std::string compared(const std::vector<float>& x, const std::vector<float>& y, tolerance t = {}) {
  return compare(vector_of(x), vector_of(y), t).reason;
}

TEST(compare, accepts_what_the_tolerance_allows) {
  EXPECT_THAT(compared({1.0009f}, {1}), IsEmpty());
  EXPECT_THAT(compared({1.0011f}, {1}), HasSubstr("1 of 1"));
  EXPECT_THAT(compared({9e-8f}, {0}), IsEmpty());
  EXPECT_THAT(compared({2e-7f}, {0}), HasSubstr("differ"));
  EXPECT_THAT(compared({-1}, {1}), HasSubstr("differ"));
}

TEST(compare, measures_relative_to_the_expected_value) {
  EXPECT_THAT(compared({100}, {200}, {0.5, 0}), IsEmpty());
  EXPECT_THAT(compared({200}, {100}, {0.5, 0}), HasSubstr("differ"));
}

TEST(compare, forgives_what_rounding_does_beside_greater_elements) {
  // 13 rounds in steps of 9.5e-7; four units of 2^-23 of it are 6.2e-6
  EXPECT_THAT(compared({13, 6e-6f}, {13, 0}), IsEmpty());
  EXPECT_THAT(compared({13, 7e-6f}, {13, 0}), HasSubstr("1 of 2"));
  EXPECT_THAT(compared({13, 6e-6f}, {13, 0}, {0, 0}), HasSubstr("1 of 2"));
}

TEST(compare, takes_nan_and_infinities_literally) {
  EXPECT_THAT(compared({NAN, infinity, -infinity}, {NAN, infinity, -infinity}), IsEmpty());
  EXPECT_THAT(compared({1}, {NAN}), HasSubstr("expected nan"));
  EXPECT_THAT(compared({NAN}, {1}), HasSubstr("is nan"));
  EXPECT_THAT(compared({infinity}, {-infinity}), HasSubstr("differ"));
  EXPECT_THAT(compared({3e38f}, {infinity}), HasSubstr("differ"));
  EXPECT_THAT(compared({infinity}, {3e38f}), HasSubstr("differ"));
}

TEST(compare, is_exact_for_integers_and_bools) {
  const std::int64_t big = std::int64_t{1} << 60;
  EXPECT_FALSE(compare(vector_of<std::int64_t>({big}), vector_of<std::int64_t>({big}), {}));
  EXPECT_TRUE(compare(vector_of<std::int64_t>({big + 1}), vector_of<std::int64_t>({big}), {}));
  EXPECT_TRUE(compare(vector_of<std::uint8_t>({100}), vector_of<std::uint8_t>({101}), {1, 1}));
  const bool yes = true, no = false;
  EXPECT_FALSE(compare(argument::of<bool>({}, {&yes, 1}), argument::of<bool>({}, {&yes, 1}), {}));
  EXPECT_TRUE(compare(argument::of<bool>({}, {&yes, 1}), argument::of<bool>({}, {&no, 1}), {1, 1}));
}

TEST(compare, wants_equal_types_and_extents) {
  EXPECT_THAT(compare(vector_of<float>({1}), vector_of<double>({1}), {}).reason,
              HasSubstr("element type is f32, expected f64"));
  const float two[] = {1, 2};
  EXPECT_THAT(compare(argument::of<float>({2}, two), argument::of<float>({2, 1}, two), {}).reason,
              HasSubstr("expected f32[2, 1]"));
}

TEST(compare, says_how_many_differ_and_where) {
  const float x[] = {0, 1, 2, 3, 4, 50}, y[] = {0, 1, 2, 3.5f, 4, 5};
  const difference d = compare(argument::of<float>({2, 3}, x), argument::of<float>({2, 3}, y), {});
  EXPECT_EQ(d.mismatches, 2);
  EXPECT_EQ(d.elements, 6);
  EXPECT_EQ(d.worst, 45);
  EXPECT_THAT(d.reason, HasSubstr("2 of 6 elements differ; first [1, 0] is 3, expected 3.5; worst [1, 2] is 50"));
}

TEST(compare, reads_strided_arguments) {
  float x[] = {1, 2, 3, 4};
  const float y[] = {1, 3, 2, 4};
  EXPECT_FALSE(compare(argument(shape(dtype::f32, {2, 2}, {1, 2}), x), argument::of<float>({2, 2}, y), {}));
}

TEST(compare_by_value, allows_cancellation_in_proportion_to_the_tensor) {
  const argument x = vector_of<float>({1e-3f, 1000}), y = vector_of<float>({0, 1000});
  EXPECT_TRUE(compare(x, y, {}));
  EXPECT_FALSE(compare_by_value(x, y, {}));
  EXPECT_TRUE(compare_by_value(vector_of<float>({2, 1000}), y, {}));
  EXPECT_TRUE(compare_by_value(vector_of<float>({0, 1000, 5}), vector_of<float>({0, 1000, NAN}), {}));
}

TEST(compare, agrees_on_tensors_without_elements) {
  EXPECT_FALSE(compare(argument(shape(dtype::f32, {0, 3})), argument(shape(dtype::f32, {0, 3})), {}));
  EXPECT_TRUE(compare(argument(shape(dtype::f32, {0, 3})), argument(shape(dtype::f32, {3, 0})), {}));
}

}  // namespace
}  // namespace kiln::driver

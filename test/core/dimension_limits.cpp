#include <gtest/gtest.h>

#include <limits>

#include "kiln/core/argument.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
const dimension n = dimension::symbol("n"), m = dimension::symbol("m");

// The code of the error that the call raises.
template <class F> errc code_of(const F& f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing was raised";
  return errc::internal;
}

static_assert(dimension(most) + 0 == dimension(most));
static_assert(dimension(most / 2) * 2 == dimension(most - 1));
static_assert(at_most(dimension::least_constant, dimension(most)) == true);
static_assert(same(dimension::least_constant, dimension(most)) == false);

TEST(dimension_limits, constants_do_not_wrap) {
  dimension x = most, least = dimension::least_constant;
  EXPECT_EQ(code_of([&] { x + 1; }), errc::limit);
  EXPECT_EQ(code_of([&] { x * 2; }), errc::limit);
  EXPECT_EQ(code_of([&] { least - 1; }), errc::limit);
  EXPECT_EQ(code_of([&] { least - x; }), errc::limit);
  EXPECT_EQ(code_of([] { product(ints{std::int64_t{1} << 40, std::int64_t{1} << 40}); }), errc::limit);
}

TEST(dimension_limits, coefficients_do_not_wrap) {
  const dimension x = n * (std::int64_t{1} << 40);
  EXPECT_EQ(code_of([&] { x*(std::int64_t{1} << 40); }), errc::limit);
  EXPECT_EQ(code_of([&] { n* most + n; }), errc::limit);
  EXPECT_EQ(code_of([&] { n + most + 1; }), errc::limit);
  EXPECT_EQ(n * most - n, n * (most - 1));
}

TEST(dimension_limits, expressions_stop_growing) {
  const auto repeat = [](const auto& step) {
    return code_of([&] {
      dimension x = n + m;
      for (int i = 0; i < 60; ++i) x = step(x);
    });
  };
  EXPECT_EQ(repeat([](dimension x) { return x * x; }), errc::limit);
  EXPECT_EQ(repeat([](dimension x) { return x / 3 + x / 5; }), errc::limit);
  EXPECT_EQ(repeat([](dimension x) { return smaller(x / 3, x / 5 + 1) % (m + 7); }), errc::limit);
  dimension power = n;
  for (int i = 1; i < 32; ++i) power *= n;
  EXPECT_EQ(code_of([&] { power* n; }), errc::limit);
}

TEST(dimension_limits, bounds_are_those_of_the_parts) {
  const dimension a = dimension::symbol("a", 2, 9), c = dimension::symbol("c", 3, 4);
  EXPECT_EQ((a / c).min(), 0);
  EXPECT_EQ((a / c).max(), 3);
  EXPECT_EQ(((a - 20) / c).min(), -6);
  EXPECT_EQ((a % c).max(), 3);
  EXPECT_EQ((smaller(a, c) * 2 + larger(a, c)).min(), 7);
  EXPECT_EQ((smaller(a, c) * 2 + larger(a, c)).max(), 17);
}

TEST(dimension_limits, arguments_have_sizes_that_fit) {
  const std::int64_t half = std::int64_t{1} << 31;
  EXPECT_EQ(code_of([] { argument(shape{dtype::f32, {-1}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { argument(shape{dtype::f32, {-2, -2}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { argument(shape{dtype::f32, {half, half}}); }), errc::limit);
  EXPECT_EQ(code_of([&] { argument(shape{dtype::u8, {half, half / 2}}); }), errc::limit);
}

}  // namespace
}  // namespace kiln

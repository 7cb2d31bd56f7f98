#include <gtest/gtest.h>

#include <cmath>

#include "kiln/core/literal.hpp"

namespace kiln {
namespace {

// Every code of a format decodes to a number that encodes to that code, and rounding picks the nearest of them.
template <class T> void expect_nearest(unsigned codes, float least_overflow) {
  for (unsigned c = 0; c < codes; ++c) {
    T x;
    x.bits = static_cast<std::uint8_t>(c);
    const float v = float(x);
    if (std::isnan(v))
      EXPECT_TRUE(std::isnan(float(T(v)))) << c;
    else
      EXPECT_EQ(T(v).bits, c) << v;
  }
  for (unsigned c = 0; c + 1 < codes / 2; ++c) {
    T low, high;
    low.bits = static_cast<std::uint8_t>(c);
    high.bits = static_cast<std::uint8_t>(c + 1);
    const float a = float(low), b = float(high), half_way = a + (b - a) / 2;
    if (!std::isfinite(b)) break;
    EXPECT_EQ(T(half_way).bits, c + (c & 1u)) << a;
    EXPECT_EQ(T(std::nextafter(half_way, a)).bits, c) << a;
    EXPECT_EQ(T(std::nextafter(half_way, b)).bits, c + 1) << a;
  }
  EXPECT_FALSE(std::isfinite(float(T(least_overflow))));
  EXPECT_TRUE(std::isfinite(float(T(std::nextafter(least_overflow, 0.0f)))));
  EXPECT_TRUE(std::isnan(float(T(NAN))));
}

TEST(narrow, floats_of_eight_bits_round_to_nearest_even) {
  expect_nearest<float8_e4m3fn>(256, std::nextafter(464.0f, 500.0f));
  expect_nearest<float8_e4m3fnuz>(256, 248.0f);
  expect_nearest<float8_e5m2>(256, 61440.0f);
  expect_nearest<float8_e5m2fnuz>(256, 61440.0f);
}

TEST(narrow, four_bits_hold_sixteen_numbers) {
  const float numbers[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (unsigned c = 0; c < 16; ++c) {
    float4_e2m1 x;
    x.bits = static_cast<std::uint8_t>(c);
    EXPECT_EQ(float(x), c < 8 ? numbers[c] : -numbers[c - 8]);
    EXPECT_EQ(float4_e2m1(float(x)).bits, c);
  }
  EXPECT_EQ(float(float4_e2m1(2.5f)), 2);
  EXPECT_EQ(float(float4_e2m1(3.5f)), 4);
  EXPECT_EQ(float(float4_e2m1(INFINITY)), 6);
  EXPECT_EQ(float(float4_e2m1(-7.0f)), -6);
}

TEST(narrow, scales_are_powers_of_two) {
  for (unsigned c = 0; c < 255; ++c) {
    float8_e8m0 x;
    x.bits = static_cast<std::uint8_t>(c);
    EXPECT_EQ(float(x), std::ldexp(1.0f, static_cast<int>(c) - 127));
    EXPECT_EQ(float8_e8m0(float(x)).bits, c);
  }
  EXPECT_EQ(float8_e8m0(2.99f).bits, 128);
  EXPECT_EQ(float8_e8m0(3.0f).bits, 129);
  EXPECT_EQ(float8_e8m0(3.4e38f).bits, 254);
  EXPECT_TRUE(std::isnan(float(float8_e8m0(INFINITY))));
}

TEST(narrow, integers_wrap) {
  for (std::int64_t v = -40; v < 40; ++v) {
    EXPECT_EQ(std::int64_t(int4(v)), ((v + 8) % 16 + 16) % 16 - 8);
    EXPECT_EQ(std::int64_t(int2(v)), ((v + 2) % 4 + 4) % 4 - 2);
    EXPECT_EQ(std::uint64_t(uint4(static_cast<std::uint64_t>(v))), static_cast<std::uint64_t>(v) & 15u);
  }
  EXPECT_EQ(convert_value<float>(convert_value<int4>(-3.9f)), -3.0f);
  EXPECT_EQ(convert_value<float>(convert_value<uint2>(3.9f)), 3.0f);
}

TEST(narrow, every_dtype_stores_and_reads_back) {
  for (std::size_t k = 0; k < all_dtypes; ++k) {
    const auto t = static_cast<dtype>(k);
    if (is_object(t)) continue;
    EXPECT_EQ(is_narrow(t), dtypes::narrow.contains(t)) << to_string(t);
    EXPECT_EQ(is_float(t) + is_integer(t) + (t == dtype::boolean), 1) << to_string(t);
    visit_storage(t, [&]<class S>(type_tag<S>) {
      EXPECT_EQ(dtype_of<S>, t);
      EXPECT_EQ(sizeof(S), size_of(t));
    });
    const float one = 1;
    EXPECT_EQ(literal::of<float>({t, {1}}, {&one, 1}).to<float>()[0], 1.0f) << to_string(t);
  }
}

constexpr bool folds = [] {
  const float values[] = {300, -0.3f};
  return literal::of<float>({dtype::f8e4m3fn, {2}}, values).to<float>()[0] == 288.0f &&
         literal::of<float>({dtype::f8e4m3fn, {2}}, values).to<float>()[1] == -0.3125f;
}();
static_assert(folds);

}  // namespace
}  // namespace kiln

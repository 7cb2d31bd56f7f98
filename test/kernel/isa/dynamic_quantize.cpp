// Floats as bytes by their own range, bit by bit as the op's own formula gives them.
#include "kiln/kernel/int8/dynamic_quantize.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "kernel/isa/random_values.hpp"

namespace kiln::kernels {
namespace {

struct quantized {
  std::vector<std::uint8_t> numbers;
  float scale = 0;
  std::uint8_t zero = 0;
};

std::uint8_t byte_of(float x) { return x == x ? static_cast<std::uint8_t>(x) : std::uint8_t{0}; }

// One by one, with divisions.
quantized expected_of(const std::vector<float>& x) {
  float low = 0, high = 0;
  for (const float v : x) low = v < low ? v : low, high = v > high ? v : high;
  const float range = (high - low) / 255;
  quantized out;
  out.scale = range == 0 ? 1 : range;
  const auto bounded = [](float v) { return v < 0 ? 0.F : v > 255 ? 255.F : v; };
  const float zero = bounded(std::nearbyint(-low / out.scale));
  out.zero = byte_of(zero);
  for (const float v : x) out.numbers.push_back(byte_of(bounded(std::nearbyint(v / out.scale) + zero)));
  return out;
}

void check(thread_pool& pool, const std::vector<float>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  const quantized expected = expected_of(x);
  quantized found;
  constexpr std::size_t beyond = 70;
  found.numbers.assign(x.size() + beyond, 0xa5);
  std::vector<std::byte> scratch(static_cast<std::size_t>(range_scratch(n, pool.size())) + 16, std::byte{0x5a});
  quantize_by_range(pool, x.data(), n, found.numbers.data(), &found.scale, &found.zero, scratch.data());
  for (std::size_t i = scratch.size() - 16; i < scratch.size(); ++i) ASSERT_EQ(scratch[i], std::byte{0x5a});
  ASSERT_EQ(found.scale, expected.scale) << n;
  ASSERT_EQ(found.zero, expected.zero) << n;
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(found.numbers[i], expected.numbers[i]) << i << " of " << n;
  for (std::size_t i = 0; i < beyond; ++i) ASSERT_EQ(found.numbers[x.size() + i], 0xa5) << "written beyond";
}

TEST(dynamic_quantize, any_number_of_values_and_threads) {
  for (const unsigned threads : {1U, 2U, 3U}) {
    thread_pool pool(threads);
    for (const std::int64_t n : {0, 1, 3, 15, 16, 17, 63, 65, 127, 1000, 4095, 4096, 4097, 33000, 300001})
      check(pool, testing::random_values<float>(n, static_cast<unsigned>(n) + threads));
  }
}

// The range may lie anywhere around 0, and the first or the last value alone may make it.
TEST(dynamic_quantize, ranges_are_widened_to_zero) {
  thread_pool pool(2);
  for (const float shift : {-3.F, -1.F, -.25F, 0.F, 1.F, 40.F})
    for (const std::size_t outlier : {std::size_t{0}, std::size_t{4096}, std::size_t{9001}}) {
      std::vector<float> x = testing::random_values<float>(9002, 7);
      for (float& v : x) v += shift;
      x[outlier] = shift < 0 ? -9 : 9;
      check(pool, x);
    }
  check(pool, std::vector<float>(5000, 0.F));
  check(pool, std::vector<float>(5000, -0.F));
}

// Scales beyond those that a step from the inverse serves, and powers of two, whose quotients lie on edges.
TEST(dynamic_quantize, scales_of_all_sizes) {
  thread_pool pool(2);
  for (const float most : {255.F, 127.5F, 0x1p-30F, 255 * 0x1p-70F, 255 * 0x1p-110F, 0x1p70F, 0x1.fp126F}) {
    std::vector<float> x = testing::random_values<float>(5003, 3);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = i < 511 ? (static_cast<float>(i) / 2 - 100) / 255 * most : x[i] * .3F * most;
    x[600] = most * .6F, x[601] = -most * .4F;
    check(pool, x);
  }
}

TEST(dynamic_quantize, nan_is_zero_and_widens_no_range) {
  thread_pool pool(2);
  for (const std::size_t n : {std::size_t{7}, std::size_t{5000}}) {
    std::vector<float> x = testing::random_values<float>(static_cast<std::int64_t>(n), 5);
    for (std::size_t i = 0; i < n; i += 3) x[i] = std::numeric_limits<float>::quiet_NaN();
    check(pool, x);
    x[1] = std::numeric_limits<float>::infinity();
    check(pool, x);
    x[1] = -std::numeric_limits<float>::infinity();
    check(pool, x);
    x[2] = std::numeric_limits<float>::infinity();
    check(pool, x);
  }
}

// Floats next to the edges between two bytes are the only ones that an inexact quotient could send elsewhere.
TEST(dynamic_quantize, edges_between_bytes) {
  for (const float scale : testing::random_values<float>(400, 11)) {
    const float high = 255 * std::abs(scale) * .7F, low = -255 * std::abs(scale) * .3F;
    float_range of{low, high};
    const dynamic_quantization by(of);
    std::vector<float> x;
    for (int k = -by.zero; k < 255 - by.zero; ++k) {
      float edge = by.scale * (static_cast<float>(k) + .5F);
      for (int i = 0; i < 4; ++i) edge = std::nextafter(edge, -std::numeric_limits<float>::infinity());
      for (int i = 0; i < 9; ++i, edge = std::nextafter(edge, std::numeric_limits<float>::infinity()))
        x.push_back(edge);
    }
    std::vector<std::uint8_t> found(x.size());
    by.write(found.data(), x.data(), static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(found[i], byte_of(std::clamp(std::nearbyint(x[i] / by.scale) + by.zero, 0.F, 255.F)))
          << x[i] << by.scale;
  }
}

TEST(dynamic_quantize, steps_serve_scales_whose_last_bits_are_not_nearly_zeros) {
  EXPECT_TRUE(dynamic_quantization::rounds_as_division(.0123F));
  EXPECT_FALSE(dynamic_quantization::rounds_as_division(.5F));
  EXPECT_FALSE(dynamic_quantization::rounds_as_division(0x1.000012p-7F));  // nine last places above
  EXPECT_TRUE(dynamic_quantization::rounds_as_division(0x1.000014p-7F));
  EXPECT_FALSE(dynamic_quantization::rounds_as_division(0x1.fffff0p-7F));
  EXPECT_FALSE(dynamic_quantization::rounds_as_division(0x1.3579p-61F));
  EXPECT_FALSE(dynamic_quantization::rounds_as_division(0x1.3579p61F));
}

}  // namespace
}  // namespace kiln::kernels

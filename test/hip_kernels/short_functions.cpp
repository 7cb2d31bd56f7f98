// The shorter functions of kernels whose results have 16 bits, beside double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kiln/backend/hip/kernels/platform/elements.hpp"

namespace {

using kiln::gpu::short_erf;

TEST(short_functions, erf_is_close_everywhere) {
  for (double x = 1e-30; x < 1e4; x *= 1.0003) {
    const auto at = static_cast<float>(x);
    const double expected = std::erf(static_cast<double>(at));
    ASSERT_NEAR(short_erf(at), expected, std::min(3e-7, 6e-6 * expected)) << x;
    ASSERT_EQ(short_erf(-at), -short_erf(at)) << x;
    ASSERT_LE(short_erf(at), 1.0f) << x;
  }
}
TEST(short_functions, erf_of_what_is_no_number) {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(short_erf(infinite), 1.0f);
  EXPECT_EQ(short_erf(-infinite), -1.0f);
  EXPECT_TRUE(std::isnan(short_erf(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(short_erf(0.0f), 0.0f);
  EXPECT_TRUE(std::signbit(short_erf(-0.0f)));
}

}  // namespace

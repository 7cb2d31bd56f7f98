#include <gtest/gtest.h>

#include "kiln/core/dimension.hpp"

namespace kiln {
namespace {

const dimension b = dimension::symbol("b"), s = dimension::symbol("s"), p = dimension::symbol("p");

// reshape's -1 over a cache of s + p positions: the sum divides out
TEST(dimension_division, a_sum_divides_its_multiples) {
  EXPECT_EQ((b * (s + p) * 192) / (b * (s + p) * 32), dimension(6));
  EXPECT_EQ((b * s * 6 + b * p * 6) / (s + p), b * 6);
  EXPECT_EQ((s * s - p * p) / (s + p), s - p);
  EXPECT_EQ((b * (s + p)) % (s + p), dimension(0));
}

TEST(dimension_division, an_inexact_quotient_stays) {
  const dimension q = (s * 3 + p) / (s + p);
  EXPECT_FALSE(q.is_constant());
  bindings sizes;
  sizes.bind(s, 5);
  sizes.bind(p, 2);
  EXPECT_EQ(sizes.evaluate(q), 2);  // 17 / 7
  EXPECT_EQ(sizes.evaluate((s * 3) / (s * 2 + p)), 1);
}

}  // namespace
}  // namespace kiln

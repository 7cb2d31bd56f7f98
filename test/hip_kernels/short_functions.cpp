// The shorter functions of kernels whose results have 16 bits, beside double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kiln/backend/hip/kernels/platform/elements.hpp"

namespace {

using namespace kiln::gpu;

constexpr float infinite = std::numeric_limits<float>::infinity(), no_number = std::numeric_limits<float>::quiet_NaN();

/// A short function, the one that it stands for, and the range where results are neither infinite nor less than 2^-126.
struct short_function {
  const char* name;
  float (*given)(float);
  double (*expected)(double);
  double from, to;
  bool odd = false;  ///< keeps the sign of 0
};
constexpr short_function all[] = {
    {"exp", short_exp, std::exp, -87, 88.7},
    {"sigmoid", short_sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -87, 1e30},
    {"log", short_log, std::log, 1e-37, 3e38},
    {"log1p", short_log1p, std::log1p, -1, 3e38, true},
    {"expm1", short_expm1, std::expm1, -1e30, 88.7, true},
    {"cosh", short_cosh, std::cosh, -89, 89},
    {"sinh", short_sinh, std::sinh, -89, 89, true},
    {"asinh", short_asinh, std::asinh, -3e38, 3e38, true},
    {"acosh", short_acosh, std::acosh, 1, 3e38},
    {"atanh", short_atanh, std::atanh, -1, 1, true},
};

// From 1e-30 on, both ways, and around 1, where domains end, by steps of every size.
TEST(short_functions, are_close_everywhere) {
  for (const short_function& f : all) {
    SCOPED_TRACE(f.name);
    const auto compare = [&](double x) {
      const auto at = static_cast<float>(x);
      if (!(double{at} >= f.from && double{at} <= f.to)) return;
      const double expected = f.expected(double{at});
      if (std::isfinite(expected)) {
        const double greatest = 0x1p120, bound = std::abs(expected) < greatest ? 0x1p-17 : 0x1p-16;
        ASSERT_NEAR(f.given(at), expected, bound * std::abs(expected)) << at;
      } else {
        ASSERT_EQ(double{f.given(at)}, expected) << at;
      }
    };
    for (double x = 1e-37; x < 3e38; x *= 1.003)
      for (const double near : {x, -x, 1 + x, 1 - x, x - 1}) {
        compare(near);
        if (::testing::Test::HasFailure()) return;
      }
  }
}
TEST(short_functions, ends_of_domains_and_what_lies_outside) {
  struct value {
    float of, is;
  };
  const auto check = [](const char* name, float (*f)(float), std::initializer_list<value> values) {
    EXPECT_TRUE(std::isnan(f(no_number))) << name;
    for (const value& v : values)
      if (std::isnan(v.is))
        EXPECT_TRUE(std::isnan(f(v.of))) << name << " of " << v.of << " is " << f(v.of);
      else
        EXPECT_EQ(f(v.of), v.is) << name << " of " << v.of;
  };
  check("exp", short_exp, {{0, 1}, {-0.0f, 1}, {infinite, infinite}, {-infinite, 0}, {1e30f, infinite}, {-1e30f, 0}});
  check("sigmoid", short_sigmoid, {{0, 0.5f}, {-0.0f, 0.5f}, {infinite, 1}, {-infinite, 0}, {1e30f, 1}, {-1e30f, 0}});
  check("log", short_log, {{1, 0}, {0, -infinite}, {-0.0f, -infinite}, {infinite, infinite}});
  check("log", short_log, {{-infinite, no_number}, {-1e-30f, no_number}, {-1, no_number}, {-1e30f, no_number}});
  check("log1p", short_log1p, {{0, 0}, {-1, -infinite}, {infinite, infinite}});
  check("log1p", short_log1p, {{-infinite, no_number}, {-1.0000002f, no_number}, {-1e30f, no_number}});
  check("expm1", short_expm1, {{0, 0}, {infinite, infinite}, {-infinite, -1}, {1e30f, infinite}, {-1e30f, -1}});
  check("cosh", short_cosh, {{0, 1}, {-0.0f, 1}, {infinite, infinite}, {-infinite, infinite}, {1e30f, infinite}});
  check("sinh", short_sinh, {{0, 0}, {infinite, infinite}, {-infinite, -infinite}, {-1e30f, -infinite}});
  check("asinh", short_asinh, {{0, 0}, {infinite, infinite}, {-infinite, -infinite}});
  check("acosh", short_acosh, {{1, 0}, {infinite, infinite}, {-infinite, no_number}, {0.99999994f, no_number}});
  check("acosh", short_acosh, {{0, no_number}, {-1, no_number}, {-5000, no_number}, {-1e8f, no_number}});
  check("atanh", short_atanh, {{0, 0}, {1, infinite}, {-1, -infinite}, {infinite, no_number}, {-infinite, no_number}});
  check("atanh", short_atanh, {{1.0000001f, no_number}, {-1.0000001f, no_number}, {3, no_number}, {-3, no_number}});
  check("atanh", short_atanh, {{1e30f, no_number}, {-1e30f, no_number}, {3e38f, no_number}, {-3e38f, no_number}});
  for (const short_function& f : all) {
    if (!f.odd) continue;
    EXPECT_FALSE(std::signbit(f.given(0.0f))) << f.name;
    EXPECT_TRUE(std::signbit(f.given(-0.0f))) << f.name;
  }
}

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
  EXPECT_EQ(short_erf(infinite), 1.0f);
  EXPECT_EQ(short_erf(-infinite), -1.0f);
  EXPECT_TRUE(std::isnan(short_erf(no_number)));
  EXPECT_EQ(short_erf(0.0f), 0.0f);
  EXPECT_TRUE(std::signbit(short_erf(-0.0f)));
}

}  // namespace

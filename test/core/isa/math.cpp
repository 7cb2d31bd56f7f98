// Accuracy of the elementary functions against the C library in a wider type, and equality of vector and scalar bit for
// bit. Bounds are in units in the last place, a little above what was measured.
#include "kiln/core/math.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kiln/core/simd.hpp"

namespace {

template <class T> double ulps(T got, long double want) {
  using limits = std::numeric_limits<T>;
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e9;
  const T nearest = static_cast<T>(want);
  if (got == nearest) return want == got ? 0 : 0.5;
  if (std::isinf(nearest)) return got == std::copysign(limits::max(), nearest) ? 1 : 1e9;
  if (std::isinf(got)) return nearest == std::copysign(limits::max(), got) ? 1 : 1e9;
  int exponent = 0;
  std::frexp(want, &exponent);
  exponent = std::max(exponent, limits::min_exponent) - limits::digits;
  return static_cast<double>(std::ldexp(std::fabs(static_cast<long double>(got) - want), -exponent));
}

class random_bits {
 public:
  std::uint64_t operator()() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_;
  }

 private:
  std::uint64_t state_ = 88172645463325252u;
};

template <class T> std::vector<T> special_values() {
  using limits = std::numeric_limits<T>;
  std::vector<T> all;
  for (const T x : {T(0),
                    limits::denorm_min(),
                    limits::min() / 2,
                    limits::min(),
                    limits::epsilon() / 4,
                    T(0.5),
                    T(1),
                    T(1.5),
                    T(2),
                    T(2.5),
                    T(3),
                    T(10),
                    T(255),
                    T(8388608.5),
                    limits::max() / 2,
                    limits::max(),
                    limits::infinity(),
                    limits::quiet_NaN(),
                    std::nextafter(T(1), T(2)),
                    std::nextafter(T(1), T(0))})
    all.push_back(x), all.push_back(-x);
  return all;
}

// Every 4099th float of all, or doubles by bits and over the magnitudes that matter, and the special values.
template <class T> std::vector<T> samples() {
  std::vector<T> all = special_values<T>();
  if constexpr (sizeof(T) == 4) {
    for (std::uint64_t b = 0; b < (std::uint64_t{1} << 32); b += 4099)
      all.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(b)));
    for (int i = -20000; i <= 20000; ++i) all.push_back(static_cast<float>(i) / 256);
  } else {
    random_bits next;
    for (int i = 0; i < 150000; ++i) {
      const std::uint64_t b = next();
      all.push_back(i % 3 == 0
                        ? std::bit_cast<double>(b)
                        : std::ldexp(static_cast<double>(static_cast<std::int64_t>(b)), static_cast<int>(b % 41) - 93));
    }
  }
  while (all.size() % 64) all.push_back(1);
  return all;
}

template <class T> bool same_bits(T a, T b) { return (a != a && b != b) || kiln::bits(a) == kiln::bits(b); }

template <class T, class F, class Oracle> void check_type(const char* name, F f, Oracle oracle, double bound) {
  static const std::vector<T> xs = samples<T>();
  using V = kiln::native_vec<T>;
  double worst = 0;
  T worst_at = 0;
  std::size_t unequal = 0;
  for (std::size_t i = 0; i < xs.size(); i += kiln::lanes<V>) {
    const V y = f(kiln::load<V>(&xs[i]));
    for (int lane = 0; lane < kiln::lanes<V>; ++lane) {
      const T x = xs[i + static_cast<std::size_t>(lane)], scalar = f(x);
      unequal += !same_bits<T>(scalar, y[lane]);
      const double error = ulps(scalar, oracle(x));
      if (error > worst) worst = error, worst_at = x;
    }
  }
  EXPECT_EQ(unequal, 0u) << name << ": vector and scalar differ";
  EXPECT_LE(worst, bound) << name << "(" << worst_at << ") = " << f(worst_at) << ", not "
                          << static_cast<double>(oracle(worst_at));
}

// The float oracle is double, the double oracle long double.
template <class F, class Oracle>
void check(const char* name, F f, Oracle oracle, double float_bound, double double_bound) {
  check_type<float>(
      name, f, [&](float x) -> long double { return oracle(static_cast<double>(x)); }, float_bound);
  check_type<double>(
      name, f, [&](double x) -> long double { return oracle(static_cast<long double>(x)); }, double_bound);
}

#define CHECK(function, reference, ...) \
  check(                                \
      #function, [](auto x) { return kiln::function(x); }, [](auto x) { return reference; }, __VA_ARGS__)

TEST(math, exponentials) {
  CHECK(exp, std::exp(x), kiln::has_fma ? 1.0 : 1.2, 1.1);
  CHECK(exp2, std::exp2(x), 1.2, 1.2);
  CHECK(expm1, std::expm1(x), 1.5, 2);
  CHECK(sigmoid, 1 / (1 + std::exp(-x)), 2.5, 2.5);
}

TEST(math, hyperbolics) {
  CHECK(tanh, std::tanh(x), 6, 3);
  CHECK(sinh, std::sinh(x), 3, 3);
  CHECK(cosh, std::cosh(x), 3.5, 3.5);
  CHECK(asinh, std::asinh(x), 2.5, 2.5);
  CHECK(acosh, std::acosh(x), 2.5, 2.5);
  CHECK(atanh, std::atanh(x), 2.5, 2.5);
}

TEST(math, logarithms) {
  CHECK(log, std::log(x), 1, 1);
  CHECK(log2, std::log2(x), 2, 2);
  CHECK(log10, std::log10(x), 2, 2);
  CHECK(log1p, std::log1p(x), 1.1, 1.1);
}

TEST(math, trigonometry) {
  CHECK(sin, std::sin(x), 2.5, 2.5);
  CHECK(cos, std::cos(x), 2.5, 2.5);
  CHECK(tan, std::tan(x), 4, 4);
  CHECK(asin, std::asin(x), 2.5, 2.5);
  CHECK(acos, std::acos(x), 1.5, 1.5);
  CHECK(atan, std::atan(x), 2, 2);
}

TEST(math, error_function) { CHECK(erf, std::erf(x), 6, 2); }

TEST(math, roots) {
  CHECK(sqrt, std::sqrt(x), 0.5, 0.5);
  CHECK(rsqrt, 1 / std::sqrt(x), 1.5, 1.5);
  CHECK(recip, 1 / x, 0.5, 0.5);
}

TEST(math, exact_functions) {
  CHECK(abs, std::fabs(x), 0, 0);
  CHECK(floor, std::floor(x), 0, 0);
  CHECK(ceil, std::ceil(x), 0, 0);
  CHECK(trunc, std::trunc(x), 0, 0);
  CHECK(round, std::nearbyint(x), 0, 0);
  CHECK(sign, std::isnan(x) ? x : decltype(x)(x > 0) - decltype(x)(x < 0), 0, 0);
}

TEST(math, results_stay_in_range) {
  for (float x = -12; x <= 12; x += 1.0f / 4096) {
    ASSERT_LE(std::fabs(kiln::tanh(x)), 1) << x;
    ASSERT_LE(std::fabs(kiln::erf(x)), 1) << x;
  }
  EXPECT_EQ(kiln::tanh(10.0f), 1);
  EXPECT_EQ(kiln::erf(-4.0f), -1);
  EXPECT_EQ(kiln::erf(7.0), 1);
}

TEST(math, sign_of_zero_is_kept) {
  const auto negative_zero = [](auto f) {
    return std::signbit(f(-0.0f)) && std::signbit(f(-0.0)) && f(-0.0f) == 0 && !std::signbit(f(0.0f));
  };
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::sin(x); }));
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::tan(x); }));
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::asin(x); }));
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::atan(x); }));
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::sinh(x); }));
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::tanh(x); }));
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::asinh(x); }));
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::atanh(x); }));
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::expm1(x); }));
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::log1p(x); }));
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::erf(x); }));
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::sqrt(x); }));
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::round(x); }));
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::floor(x); }));
  EXPECT_TRUE(negative_zero([](auto x) { return kiln::sign(x); }));
  EXPECT_TRUE(std::signbit(kiln::ceil(-0.5f)) && std::signbit(kiln::round(-0.25)) && std::signbit(kiln::trunc(-0.9f)));
}

template <class T, class F, class Oracle> void check_pairs(const char* name, F f, Oracle oracle, double bound) {
  using V = kiln::native_vec<T>;
  constexpr std::size_t step = kiln::lanes<V>;
  std::vector<T> xs, ys;
  for (const T x : special_values<T>())
    for (const T y : special_values<T>()) xs.push_back(x), ys.push_back(y);
  random_bits next;
  const auto draw = [&](int i) {
    if (i % 2) return std::bit_cast<T>(static_cast<decltype(kiln::bits(T(0)))>(next() >> (64 - 8 * sizeof(T))));
    return static_cast<T>(
        std::ldexp(static_cast<double>(static_cast<std::int64_t>(next())), static_cast<int>(next() % 24) - 73));
  };
  for (int i = 0; i < 200000; ++i) xs.push_back(draw(i)), ys.push_back(draw(i));
  while (xs.size() % step) xs.push_back(1), ys.push_back(2);
  double worst = 0;
  std::size_t worst_at = 0, unequal = 0;
  for (std::size_t i = 0; i < xs.size(); i += step) {
    const V z = f(kiln::load<V>(&xs[i]), kiln::load<V>(&ys[i]));
    for (std::size_t lane = 0; lane < step; ++lane) {
      const T scalar = f(xs[i + lane], ys[i + lane]);
      unequal += !same_bits<T>(scalar, z[lane]);
      const long double want = oracle(xs[i + lane], ys[i + lane]);
      double error = ulps(scalar, want);
      if (want == 0 && std::signbit(want) != std::signbit(scalar)) error = 1e9;
      if (error > worst) worst = error, worst_at = i + lane;
    }
  }
  const T x = xs[worst_at], y = ys[worst_at];
  EXPECT_EQ(unequal, 0u) << name << ": vector and scalar differ";
  EXPECT_LE(worst, bound) << name << "(" << x << ", " << y << ") = " << f(x, y) << ", not "
                          << static_cast<double>(oracle(x, y));
}

#define CHECK_PAIRS(type, wide, function, reference, bound)           \
  check_pairs<type>(                                                  \
      #function, [](auto x, auto y) { return kiln::function(x, y); }, \
      [](wide x, wide y) -> long double { return reference; }, bound)

TEST(math, power) {
  CHECK_PAIRS(float, double, pow, std::pow(x, y), 1.5);
  CHECK_PAIRS(double, long double, pow, std::pow(x, y), 2);
}

TEST(math, atan2) {
  CHECK_PAIRS(float, double, atan2, std::atan2(x, y), 2);
  CHECK_PAIRS(double, long double, atan2, std::atan2(x, y), 2);
}

TEST(math, remainders) {
  CHECK_PAIRS(float, float, fmod, std::fmod(x, y), 0);
  CHECK_PAIRS(double, double, fmod, std::fmod(x, y), 0);
  const auto floored = [](auto x, auto y) {
    const auto r = std::fmod(x, y);
    return r != 0 ? ((r < 0) != (y < 0) ? r + y : r) : std::copysign(r, y);
  };
  check_pairs<float>(
      "mod", [](auto x, auto y) { return kiln::mod(x, y); }, floored, 0);
}

TEST(math, extremes_propagate_nan) {
  const auto lesser = [](auto x, auto y) { return std::isnan(x) ? x : std::isnan(y) ? y : x < y ? x : y; };
  const auto greater = [](auto x, auto y) { return std::isnan(x) ? x : std::isnan(y) ? y : x > y ? x : y; };
  check_pairs<float>(
      "min", [](auto x, auto y) { return kiln::min(x, y); }, lesser, 0);
  check_pairs<double>(
      "max", [](auto x, auto y) { return kiln::max(x, y); }, greater, 0);
}

TEST(math, fused_multiply_add) {
  random_bits next;
  for (int i = 0; i < 100000; ++i) {
    const float a = std::bit_cast<float>(static_cast<std::uint32_t>(next() >> 32)),
                b = std::bit_cast<float>(static_cast<std::uint32_t>(next() >> 32));
    const float c = i % 2 ? -a * b * (1 + std::ldexp(static_cast<float>(i % 7), -22))
                          : std::bit_cast<float>(static_cast<std::uint32_t>(next() >> 32));
    ASSERT_TRUE(same_bits(kiln::fma(a, b, c), std::fma(a, b, c)));
    ASSERT_TRUE(same_bits(kiln::elementary::software_fma(a, b, c), std::fma(a, b, c))) << a << " " << b << " " << c;
    const double x = std::ldexp(static_cast<double>(static_cast<std::int64_t>(next())), -60),
                 y = std::ldexp(static_cast<double>(static_cast<std::int64_t>(next())), -60);
    const double z = i % 2 ? -x * y * (1 + std::ldexp(i % 7, -51))
                           : std::ldexp(static_cast<double>(static_cast<std::int64_t>(next())), i % 200 - 160);
    ASSERT_TRUE(same_bits(kiln::elementary::software_fma(x, y, z), std::fma(x, y, z))) << x << " " << y << " " << z;
    const double big = std::ldexp(x, 1020), tall = std::ldexp(z, 1020);
    ASSERT_TRUE(same_bits(kiln::elementary::software_fma(big, y, tall), std::fma(big, y, tall)))
        << big << " " << y << " " << tall;
  }
  const auto a = kiln::splat<kiln::native_vec<float>>(1 + 0x1p-12f);
  EXPECT_EQ(kiln::fma(a, a, kiln::splat<kiln::native_vec<float>>(-1))[0], 0x1p-11f + 0x1p-24f);
}

TEST(math, constant_evaluation_agrees_with_run_time) {
  random_bits next;
  for (int i = 0; i < 20000; ++i) {
    const float x = std::fabs(std::bit_cast<float>(static_cast<std::uint32_t>(next() >> 32)));
    ASSERT_TRUE(same_bits(kiln::elementary::software_sqrt(x), kiln::sqrt(x))) << x;
    const double y = std::ldexp(static_cast<double>(next()), i % 300 - 200);
    ASSERT_TRUE(same_bits(kiln::elementary::software_sqrt(y), kiln::sqrt(y))) << y;
  }
  volatile float f = 0.7f;
  volatile double d = 123456.789;
  constexpr float cf[] = {kiln::exp(0.7f),       kiln::erf(0.7f), kiln::sin(0.7f),
                          kiln::pow(0.7f, 0.7f), kiln::log(0.7f), kiln::atan(0.7f)};
  constexpr double cd[] = {kiln::tanh(123456.789), kiln::sin(123456.789), kiln::sqrt(123456.789),
                           kiln::log10(123456.789), kiln::pow(123456.789, 1.7)};
  EXPECT_EQ(cf[0], kiln::exp<float>(f));
  EXPECT_EQ(cf[1], kiln::erf<float>(f));
  EXPECT_EQ(cf[2], kiln::sin<float>(f));
  EXPECT_EQ(cf[3], kiln::pow<float>(f, f));
  EXPECT_EQ(cf[4], kiln::log<float>(f));
  EXPECT_EQ(cf[5], kiln::atan<float>(f));
  EXPECT_EQ(cd[0], kiln::tanh<double>(d));
  EXPECT_EQ(cd[1], kiln::sin<double>(d));
  EXPECT_EQ(cd[2], kiln::sqrt<double>(d));
  EXPECT_EQ(cd[3], kiln::log10<double>(d));
  EXPECT_EQ(cd[4], kiln::pow<double>(d, 1.7));
}

TEST(math, integer_vectors) {
  using V = kiln::native_vec<std::int64_t>;
  const std::int64_t xs[8] = {7, -7, 7, -7, 0, INT64_MIN, INT64_MAX, -1}, ys[8] = {3, 3, -3, -3, 5, 2, 2, 1};
  const auto expect = [&](const char* name, auto f) {
    for (int i = 0; i < 8; ++i) {
      const V z = f(kiln::load<V>(xs + i / kiln::lanes<V> * kiln::lanes<V>),
                    kiln::load<V>(ys + i / kiln::lanes<V> * kiln::lanes<V>));
      EXPECT_EQ(z[i % kiln::lanes<V>], f(xs[i], ys[i])) << name << "(" << xs[i] << ", " << ys[i] << ")";
    }
  };
  expect("mod", [](auto a, auto b) { return kiln::mod(a, b); });
  expect("fmod", [](auto a, auto b) { return kiln::fmod(a, b); });
  expect("pow", [](auto a, auto b) { return kiln::pow(a, b); });
  expect("min", [](auto a, auto b) { return kiln::min(a, b); });
  expect("max", [](auto a, auto b) { return kiln::max(a, b); });
  expect("abs", [](auto a, auto) { return kiln::abs(a); });
  expect("sign", [](auto a, auto) { return kiln::sign(a); });
}

TEST(math, masks) {
  using V = kiln::native_vec<float>;
  V x{};
  for (int i = 0; i < kiln::lanes<V>; ++i) x[i] = static_cast<float>(i);
  const auto low = x < kiln::splat<V>(2), odd = x == kiln::splat<V>(1);
  EXPECT_EQ(kiln::select(kiln::logical_and(low, kiln::logical_not(odd)), x + kiln::splat<V>(5), kiln::splat<V>(-1))[0],
            5);
  EXPECT_EQ(kiln::select(kiln::logical_xor(low, odd), kiln::splat<V>(1), kiln::splat<V>(0))[1], 0);
  EXPECT_EQ(kiln::select(kiln::logical_or(low, odd), 1.0f, x)[1], 1);
  EXPECT_EQ(kiln::select(low, x, 9)[3], 9);
  EXPECT_TRUE(kiln::elementary::any(odd));
  EXPECT_FALSE(kiln::elementary::any(x < kiln::splat<V>(0)));
  for (int i = 0; i < kiln::lanes<V>; ++i) {
    EXPECT_TRUE(kiln::elementary::any(x == kiln::splat<V>(i))) << i;
  }
  EXPECT_TRUE(std::signbit(kiln::splat<V>(-0.0f)[0]));
}

TEST(math, vectors_wider_than_a_register) {
  using V = kiln::vec<float, 32>;
  V x{};
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i) * 5000 - 7000;
  const V s = kiln::sin(x), r = kiln::sqrt(x), e = kiln::exp(x * kiln::splat<V>(0.001f)),
          m = kiln::max(x, kiln::splat<V>(3));
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(s[i], kiln::sin(float(x[i])));
    EXPECT_TRUE(same_bits<float>(r[i], kiln::sqrt(float(x[i]))));
    EXPECT_EQ(e[i], kiln::exp(float(x[i]) * 0.001f));
    EXPECT_EQ(m[i], kiln::max(float(x[i]), 3.0f));
  }
}

}  // namespace

// What can be said at compile time: the same texts in constant evaluation, on scalars of every kind.
#include "kiln/core/math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kiln/core/dimension.hpp"
#include "kiln/core/half.hpp"

namespace {

constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
constexpr double big = std::numeric_limits<double>::max();

constexpr bool near(double got, double want, double relative) {
  const double error = got < want ? want - got : got - want;
  return error <= relative * (want < 0 ? -want : want);
}
constexpr bool negative(double x) { return (kiln::bits(x) >> 63) != 0; }

// Every function in constant evaluation, both types.
template <class T> constexpr bool constant_values(double e) {
  const T x = T(0.625);  // exact in both types
  return near(kiln::exp(x), 1.86824595743222241, e) && near(kiln::exp2(x), 1.54221082540794082, e) &&
         near(kiln::expm1(x), 0.868245957432222407, e) && near(kiln::log(x), -0.470003629245735554, e) &&
         near(kiln::log2(x), -0.678071905112637652, e) && near(kiln::log10(x), -0.204119982655924781, e) &&
         near(kiln::log1p(x), 0.485507815781700808, e) && near(kiln::sin(x), 0.585097272940462155, e) &&
         near(kiln::cos(x), 0.810963119505217902, e) && near(kiln::tan(x), 0.72148444099090442, e) &&
         near(kiln::asin(x), 0.675131532937031647, e) && near(kiln::acos(x), 0.895664793857864972, e) &&
         near(kiln::atan(x), 0.558599315343562436, e) && near(kiln::sinh(x), 0.666492264456616082, e) &&
         near(kiln::cosh(x), 1.20175369297560632, e) && near(kiln::tanh(x), 0.554599722349382294, e) &&
         near(kiln::asinh(x), 0.590143685781959002, e) && near(kiln::acosh(T(1.625)), 1.06673243190143557, e) &&
         near(kiln::atanh(x), 0.733168534396713522, e) && near(kiln::erf(x), 0.623240882188417972, e) &&
         near(kiln::sigmoid(x), 0.651354864666054244, e) && near(kiln::pow(x, T(1.5)), 0.494105884401309271, e) &&
         near(kiln::atan2(x, T(-2)), 2.83870778521482183, e) && near(kiln::sqrt(x), 0.790569415042094833, e) &&
         near(kiln::rsqrt(x), 1.26491106406735173, e) && kiln::recip(x) == T(1.6) &&
         kiln::fma(x, x, T(1)) == T(1.390625);
}
static_assert(constant_values<float>(4e-7) && constant_values<double>(1e-15));

// Exact cases.
static_assert(kiln::exp(0.0f) == 1 && kiln::exp2(-149.0f) == 0x1p-149f && kiln::exp2(10.0) == 1024 &&
              kiln::log2(0x1p-140f) == -140);
static_assert(kiln::exp(-inf) == 0 && kiln::exp(89.0f) == inf && kiln::exp(-104.0f) == 0 && kiln::log(0.0f) == -inf &&
              kiln::log(inf) == inf);
static_assert(kiln::isnan(kiln::log(-1.0f)) && kiln::isnan(kiln::sqrt(-1.0)) && kiln::isnan(kiln::sin(inf)) &&
              kiln::isnan(kiln::exp(nan)));
static_assert(kiln::sqrt(2.25) == 1.5 && kiln::sqrt(2.0f) == 1.41421356f && kiln::sqrt(big) > 1.34e154 &&
              negative(kiln::sqrt(-0.0)));
static_assert(kiln::round(2.5) == 2 && kiln::round(3.5f) == 4 && kiln::round(-0.5) == 0 && negative(kiln::round(-0.5)));
static_assert(kiln::floor(-1.5) == -2 && kiln::ceil(-1.5) == -1 && kiln::trunc(-1.5f) == -1 &&
              kiln::floor(1e300) == 1e300);
static_assert(kiln::isnan(kiln::min(nan, 1.0f)) && kiln::isnan(kiln::min(1.0f, nan)) &&
              kiln::isnan(kiln::max(nan, 1.0f)) && kiln::isnan(kiln::max(1.0f, nan)));
static_assert(kiln::sign(-3.5f) == -1 && kiln::sign(0.0) == 0 && kiln::sign(2.0) == 1 && kiln::isnan(kiln::sign(nan)));
static_assert(kiln::isinf(-inf) && !kiln::isinf(nan) && !kiln::isinf(1.0) && kiln::copysign(2.0f, -0.0f) == -2);
static_assert(kiln::fmod(5.5, -2.0) == 1.5 && kiln::mod(5.5, -2.0) == -0.5 && kiln::mod(-5.5f, 2.0f) == 0.5f &&
              kiln::fmod(1e300, 3.0) == 0 && kiln::fmod(1e300, 7.0) == 1);
static_assert(kiln::pow(-2.0f, 3.0f) == -8 && kiln::pow(0.0f, -1.0f) == inf && kiln::isnan(kiln::pow(-8.0f, 0.5f)) &&
              kiln::pow(nan, 0.0f) == 1);
static_assert(kiln::tanh(20.0f) == 1 && kiln::erf(5.0f) == 1 && kiln::erf(-5.0) > -1.0000001);
static_assert(kiln::fma(1 + 0x1p-12f, 1 + 0x1p-12f, -1.0f) == 0x1p-11f + 0x1p-24f);
static_assert(near(kiln::sin(1e22), -0.85220084976718880, 1e-15) && near(kiln::cos(3e38f), -0.484294783542, 3e-7));

// Constant evaluation allows neither overflow nor arithmetic on NaN: no function may need it, whatever the argument.
constexpr float floats[] = {0.0f,  -0.0f,   1.0f,  -1.0f,  2.0f, -2.5f, 1e-45f,
                            88.9f, -104.0f, 3e38f, -3e38f, inf,  -inf,  nan};
constexpr double doubles[] = {0.0,   1.0,  -1.0, 1e-320,      709.9,        -745.0,
                              1e300, -big, big,  double{inf}, double{-inf}, double{nan}};
template <class F, class T, std::size_t N> constexpr bool defined_for(F f, const T (&xs)[N]) {
  bool any = false;
  for (const T x : xs) any |= f(x) == f(x);
  return any;
}
template <class F, class T, std::size_t N> constexpr bool defined_for_pairs(F f, const T (&xs)[N], T y) {
  bool any = false;
  for (const T x : xs) any |= f(x, y) == f(x, y) || f(y, x) == f(y, x);
  return any || y != y;
}
#define KILN_EVERYWHERE(name)                                               \
  static_assert(defined_for([](auto x) { return kiln::name(x); }, floats)); \
  static_assert(defined_for([](auto x) { return kiln::name(x); }, doubles))
KILN_EVERYWHERE(exp);
KILN_EVERYWHERE(exp2);
KILN_EVERYWHERE(expm1);
KILN_EVERYWHERE(log);
KILN_EVERYWHERE(log2);
KILN_EVERYWHERE(log10);
KILN_EVERYWHERE(log1p);
KILN_EVERYWHERE(sin);
KILN_EVERYWHERE(cos);
KILN_EVERYWHERE(tan);
KILN_EVERYWHERE(asin);
KILN_EVERYWHERE(acos);
KILN_EVERYWHERE(atan);
KILN_EVERYWHERE(sinh);
KILN_EVERYWHERE(cosh);
KILN_EVERYWHERE(tanh);
KILN_EVERYWHERE(asinh);
KILN_EVERYWHERE(acosh);
KILN_EVERYWHERE(atanh);
KILN_EVERYWHERE(erf);
KILN_EVERYWHERE(sigmoid);
KILN_EVERYWHERE(sqrt);
KILN_EVERYWHERE(rsqrt);
KILN_EVERYWHERE(recip);
KILN_EVERYWHERE(round);
KILN_EVERYWHERE(floor);
KILN_EVERYWHERE(ceil);
KILN_EVERYWHERE(trunc);
KILN_EVERYWHERE(abs);
KILN_EVERYWHERE(sign);
#define KILN_EVERYWHERE_2(name)                                                                       \
  static_assert(defined_for_pairs([](auto x, auto y) { return kiln::name(x, y); }, floats, 0.0f));    \
  static_assert(defined_for_pairs([](auto x, auto y) { return kiln::name(x, y); }, floats, -3e38f));  \
  static_assert(defined_for_pairs([](auto x, auto y) { return kiln::name(x, y); }, floats, inf));     \
  static_assert(defined_for_pairs([](auto x, auto y) { return kiln::name(x, y); }, floats, nan));     \
  static_assert(defined_for_pairs([](auto x, auto y) { return kiln::name(x, y); }, doubles, 1e-320)); \
  static_assert(defined_for_pairs([](auto x, auto y) { return kiln::name(x, y); }, doubles, -big));   \
  static_assert(defined_for_pairs([](auto x, auto y) { return kiln::name(x, y); }, doubles, double{inf}))
KILN_EVERYWHERE_2(pow);
KILN_EVERYWHERE_2(atan2);
KILN_EVERYWHERE_2(fmod);
KILN_EVERYWHERE_2(mod);
KILN_EVERYWHERE_2(min);
KILN_EVERYWHERE_2(max);

// Integers, of every width and sign.
static_assert(kiln::abs(std::int64_t{-5}) == 5 && kiln::abs(INT64_MIN) == INT64_MIN &&
              kiln::abs(std::int8_t{-7}) == 7 && kiln::abs(5u) == 5u);
static_assert(kiln::mod(-7, 3) == 2 && kiln::mod(7, -3) == -2 && kiln::fmod(-7, 3) == -1 && kiln::mod(7u, 3u) == 1 &&
              kiln::mod(-6, 3) == 0);
static_assert(kiln::sign(std::int64_t{-9}) == -1 && kiln::sign(std::uint64_t{9}) == 1 && kiln::sign(0) == 0);
static_assert(kiln::pow(std::int64_t{3}, std::int64_t{39}) == 4052555153018976267 && kiln::pow(2, 33) == 0 &&
              kiln::pow(-2, -1) == 0);
static_assert(kiln::pow(-1, -3) == -1 && kiln::pow(1, -9) == 1 && kiln::pow(-1, -2) == 1 &&
              kiln::pow(std::uint8_t{3}, std::uint8_t{5}) == 243);
static_assert(kiln::pow(std::int16_t{-3}, std::int16_t{3}) == -27 &&
              kiln::pow(std::uint64_t{7}, std::uint64_t{0}) == 1);
static_assert(kiln::min(3, -4) == -4 && kiln::max(std::uint64_t{1}, UINT64_MAX) == UINT64_MAX && kiln::round(7) == 7);

// Selection and logic on bools; splat as the one way to bring a constant in.
static_assert(kiln::select(true, 1.0f, 2.0f) == 1 && kiln::select(false, 1.0, 2.0) == 2);
static_assert(kiln::logical_and(true, true) && !kiln::logical_and(true, false) && kiln::logical_or(false, true) &&
              !kiln::logical_xor(true, true) && kiln::logical_not(false));
static_assert(kiln::splat<float>(0.1) == 0.1f && kiln::splat<std::int64_t>(7.9) == 7 && kiln::splat<double>(1) == 1.0);
static_assert(kiln::bits(1.0f) == 0x3f800000u && kiln::from_bits<double>(0x3ff0000000000000u) == 1.0 &&
              kiln::convert<int>(-2.7f) == -2);

// A class with arithmetic and its own order, and narrow floats by way of float.
static_assert(kiln::max(kiln::dimension(3), kiln::dimension(7)) == kiln::dimension(7) &&
              kiln::min(kiln::dimension(3), kiln::dimension(7)) == kiln::dimension(3));
static_assert(kiln::splat<kiln::dimension>(4) == kiln::dimension(4) &&
              kiln::select(true, kiln::dimension(1), kiln::dimension(2)) == kiln::dimension(1));
static_assert(kiln::exp(kiln::half(0.0f)) == kiln::half(1.0f) &&
              kiln::max(kiln::bfloat16(2.0f), kiln::bfloat16(3.0f)) == kiln::bfloat16(3.0f));
static_assert(kiln::tanh(kiln::half(0.5f)) == kiln::half(0.46211716f) &&
              kiln::sqrt(kiln::half(4.0f)) == kiln::half(2.0f));

// What the concepts take.
static_assert(kiln::floating<float> && kiln::floating<double> && !kiln::floating<int> && kiln::integral<std::uint8_t> &&
              !kiln::integral<bool>);
static_assert(!kiln::is_vec<float> && !kiln::is_vec<float*> && kiln::narrow_float<kiln::half> &&
              !kiln::narrow_float<kiln::dimension>);

TEST(math, constants_hold_at_run_time) {
  EXPECT_TRUE(constant_values<float>(4e-7));
  EXPECT_TRUE(constant_values<double>(1e-15));
}

}  // namespace

#include "kiln/core/trace.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "kiln/core/error.hpp"

namespace {

using kiln::expr, kiln::scalar_kind, kiln::splat;
using enum kiln::scalar_kind;

struct leaky {
  float alpha;
  template <class T> constexpr T operator()(T x) const { return kiln::select(x > splat<T>(0), x, splat<T>(alpha) * x); }
};
struct silu {
  template <class T> constexpr T operator()(T x) const {
    const T e = kiln::exp(-x);
    return x / (splat<T>(1) + e);
  }
};
struct twice {  // the same value spelled twice
  template <class T> constexpr T operator()(T x, T y) const { return kiln::tanh(x * y) + kiln::tanh(x * y) * y; }
};
struct pick {
  template <class C, class T> constexpr T operator()(C condition, T a, T b) const {
    return kiln::select(condition, a, b);
  }
};
struct between {
  template <class T> constexpr auto operator()(T x, T low, T high) const {
    return kiln::logical_and(x >= low, kiln::logical_not(x > high));
  }
};
struct floats_only {
  constexpr float operator()(float x) const { return x; }
};
struct six {
  template <class T> constexpr T operator()(T a, T b, T c, T d, T e, T f) const { return a + b + c + d + e + f; }
};
struct nothing {};

static_assert(kiln::recorder<expr> && !kiln::recorder<float>);
static_assert(kiln::traceable<leaky, 1> && !kiln::traceable<leaky, 2> && !kiln::traceable<floats_only, 1>);
static_assert(kiln::traceable<six, 6> && !kiln::traceable<nothing, 1>);

template <class... Names> std::string text(const expr& e, Names... names) {
  return kiln::print_source(e, {names...}).str();
}

TEST(trace, prints_plain_source) {
  EXPECT_EQ(text(kiln::trace(leaky{.3f}, f32), "x"), "((x > 0.0f) ? x : (0.3f * x))");
  EXPECT_EQ(text(kiln::trace(silu{}, f32), "x"), "(x / (1.0f + kiln::exp((-x))))");
  EXPECT_EQ(text(kiln::trace(between{}, f64, f64, f64), "x", "a", "b"),
            "kiln::logical_and((x >= a), kiln::logical_not((x > b)))");
  EXPECT_EQ(kiln::trace(between{}, f64, f64, f64).kind(), boolean);
}

TEST(trace, constants_take_the_kind_they_meet) {
  EXPECT_EQ(text(kiln::trace(leaky{.3f}, f64), "x"), "((x > 0.0) ? x : (0.30000001192092896 * x))");
  const expr x = expr::argument(0, i64);
  EXPECT_EQ(text(x * 3 + splat<expr>(-7), "n"), "((n * kiln::scalar::i64(3)) + kiln::scalar::i64(-7))");
  // Nothing decided until the last operand: the tree of constants follows it.
  EXPECT_EQ(text((splat<expr>(2) * splat<expr>(0.1)) + expr::argument(0, f32), "x"), "((2.0f * 0.1f) + x)");
  EXPECT_EQ(text(kiln::trace(pick{}, boolean, f32, f32), "c", "a", "b"), "(c ? a : b)");
  EXPECT_EQ(text(kiln::select(expr::argument(0, f64) < 1, 1, 0.5f) + expr::argument(0, f64), "x"),
            "(((x < 1.0) ? 1.0 : 0.5) + x)");
}

TEST(trace, constants_round_trip) {
  const expr x = expr::argument(0, f32), d = expr::argument(0, f64), i = expr::argument(0, i64),
             u = expr::argument(0, u64);
  const expr n = expr::argument(0, i32), b = expr::argument(0, boolean);
  using limits = std::numeric_limits<float>;
  EXPECT_EQ(text(x + 0.1f, "x"), "(x + 0.1f)");
  EXPECT_EQ(text(x + 16777216, "x"), "(x + 16777216.0f)");
  EXPECT_EQ(text(x + limits::max(), "x"), "(x + 3.4028235e+38f)");
  EXPECT_EQ(text(x + limits::denorm_min(), "x"), "(x + 1e-45f)");
  EXPECT_EQ(text(x + -0.0f, "x"), "(x + (-0.0f))");
  EXPECT_EQ(text(x + limits::infinity(), "x"), "(x + kiln::from_bits<float>(0x7f800000u))");
  EXPECT_EQ(text(d + -limits::infinity(), "x"), "(x + kiln::from_bits<double>(0xfff0000000000000ull))");
  EXPECT_EQ(text(x + limits::quiet_NaN(), "x"), "(x + kiln::from_bits<float>(0x7fc00000u))");
  EXPECT_EQ(text(d + 0.1, "x"), "(x + 0.1)");
  EXPECT_EQ(text(d + 1e300, "x"), "(x + 1e+300)");
  EXPECT_EQ(text(i + INT64_MIN, "x"), "(x + kiln::scalar::i64(-9223372036854775807ll - 1))");
  EXPECT_EQ(text(u + UINT64_MAX, "x"), "(x + kiln::scalar::u64(18446744073709551615ull))");
  EXPECT_EQ(text(n + -5, "x"), "(x + (-5))");
  EXPECT_EQ(text(kiln::logical_xor(b, expr(true)), "x"), "kiln::logical_xor(x, true)");
}

TEST(trace, shared_values_get_names) {
  const auto source = kiln::print_source(kiln::trace(twice{}, f32, f32), {"x", "y"});
  ASSERT_EQ(source.statements.size(), 1u);
  EXPECT_EQ(source.statements[0], "const float t0 = kiln::tanh((x * y));");
  EXPECT_EQ(source.values, std::vector<std::string>{"(t0 + (t0 * y))"});
  EXPECT_EQ(source.str(), "const float t0 = kiln::tanh((x * y));\nreturn (t0 + (t0 * y));");
}

TEST(trace, several_results_share_values) {
  const expr x = expr::argument(0, f32), e = kiln::exp(x), results[] = {e + 1, kiln::sqrt(kiln::exp(x)), e};
  const std::string names[] = {"in"};
  const auto source = kiln::print_source(results, names);
  EXPECT_EQ(source.statements, std::vector<std::string>{"const float t0 = kiln::exp(in);"});
  EXPECT_EQ(source.values, (std::vector<std::string>{"(t0 + 1.0f)", "kiln::sqrt(t0)", "t0"}));
}

TEST(trace, long_chains_stay_linear) {
  expr x = expr::argument(0, f32);
  for (int i = 0; i < 40; ++i) x = x * x + x;  // 2^40 terms if shared values were spelled out
  EXPECT_EQ(kiln::print_source(x, {"x"}).statements.size(), 39u);
}

TEST(trace, dialects) {
  const kiln::dialect mine{.prefix = "k::", .temporary = "tmp"};
  EXPECT_EQ(kiln::print_source(kiln::trace(twice{}, f32, f32), {"a", "b"}, mine).str(),
            "const float tmp0 = k::tanh((a * b));\nreturn (tmp0 + (tmp0 * b));");
  EXPECT_EQ(kiln::print_source(kiln::trace(leaky{.5f}, f32), {"x"}, kiln::generic_source).str(),
            "kiln::select((x > kiln::splat<T>(0.0f)), x, (kiln::splat<T>(0.5f) * x))");
  EXPECT_EQ(kiln::print_source(kiln::trace(twice{}, f32, f32), {"x", "y"}, kiln::generic_source).statements[0],
            "const auto t0 = kiln::tanh((x * y));");
}

TEST(trace, calls_are_reported_and_may_have_other_names) {
  const expr x = expr::argument(0, f32), e = kiln::exp(x) * 2.0f;
  const kiln::source_text plain = kiln::print_source(kiln::select(x < e, e, kiln::tanh(x)), {"x"});
  EXPECT_EQ(plain.calls, (std::vector<std::string>{"exp", "*", "<", "tanh", "select"}));
  constexpr kiln::spelling shorter[] = {{"exp", "quick_exp"}};
  const kiln::source_text other = kiln::print_source(e, {"x"}, {.spelled = shorter, .outer_parentheses = false});
  EXPECT_EQ(other.values[0], "quick_exp(x) * 2.0f");
  EXPECT_EQ(other.calls, (std::vector<std::string>{"exp", "*"}));
}

TEST(trace, bits_change_the_kind) {
  const expr x = expr::argument(0, f32), d = expr::argument(0, f64);
  EXPECT_EQ(kiln::bits(x).kind(), u32);
  EXPECT_EQ(kiln::bits(d).kind(), u64);
  EXPECT_EQ(text(kiln::from_bits<expr>(kiln::bits(x) & 0x7fffffff), "x"),
            "kiln::from_bits<float>((kiln::bits(x) & 2147483647u))");
  EXPECT_EQ(kiln::from_bits<expr>(kiln::bits(d)).kind(), f64);
}

TEST(trace, mixed_kinds_are_refused) {
  const expr x = expr::argument(0, f32), n = expr::argument(1, i64);
  try {
    static_cast<void>(x * n);
    FAIL();
  } catch (const kiln::error& e) {
    EXPECT_EQ(e.code(), kiln::errc::invalid_argument);
    EXPECT_NE(std::string(e.what()).find("an op body mixes float and i64 in '*'"), std::string::npos) << e.what();
  }
  EXPECT_THROW(static_cast<void>(text(x + x)), kiln::error);  // an argument without a name
}

// Printed text, pasted back, computes what the op computes.
TEST(trace, printed_source_computes_the_same) {
  EXPECT_EQ(text(kiln::trace(leaky{.1f}, f32), "x"), "((x > 0.0f) ? x : (0.1f * x))");
  for (const float x : {-2.0f, 0.0f, 3.0f}) EXPECT_EQ(((x > 0.0f) ? x : (0.1f * x)), leaky{.1f}(x));
}

}  // namespace

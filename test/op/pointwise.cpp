#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "op/run_op.hpp"

namespace kiln::test {
namespace {

using f32_limits = std::numeric_limits<float>;
constexpr auto i64_least = std::numeric_limits<std::int64_t>::min();
constexpr auto i64_most = std::numeric_limits<std::int64_t>::max();

constexpr shape f(dims lens) { return {dtype::f32, lens}; }
constexpr shape of(dtype t, dims lens) { return {t, lens}; }

// --- the shape rule -------------------------------------------------------------------------------------------------

static_assert(shape_from(op::add{}, f({2, 3}), f({2, 3})) == f({2, 3}));
static_assert(shape_from(op::less{}, f({2}), f({2})) == of(dtype::boolean, {2}));
static_assert(shape_from(op::is_inf{}, f({2})) == of(dtype::boolean, {2}));
static_assert(shape_from(op::convert{dtype::u8}, f({})) == of(dtype::u8, {}));
static_assert(shape_from(op::where{}, of(dtype::boolean, {0}), of(dtype::i8, {0}), of(dtype::i8, {0})) ==
              of(dtype::i8, {0}));
static_assert(shape_from(op::logical_not{}, of(dtype::boolean, {1})) == of(dtype::boolean, {1}));
static_assert(fails(op::add{}, errc::invalid_argument, "number of inputs", f({2})));
static_assert(fails(op::add{}, errc::shape_mismatch, "operands have equal dims", f({2}), f({1})));
static_assert(fails(op::add{}, errc::shape_mismatch, "operands have one dtype", f({2}), of(dtype::f64, {2})));
static_assert(fails(op::add{}, errc::unsupported, "dtype of the operands", of(dtype::boolean, {}),
                    of(dtype::boolean, {})));
static_assert(fails(op::exp{}, errc::unsupported, "dtype of the operands", of(dtype::i32, {})));
static_assert(fails(op::convert{dtype::string}, errc::unsupported, "dtype of the result", f({})));
static_assert(fails(op::bitwise_not{}, errc::unsupported, "dtype of the operands", f({})));
static_assert(fails(op::logical_and{}, errc::unsupported, "dtype of the operands", f({}), f({})));
static_assert(fails(op::where{}, errc::shape_mismatch, "dtype of a condition", f({}), f({}), f({})));

// --- exact values, in constant evaluation ---------------------------------------------------------------------------

template <class Op, class... A> constexpr float on(const Op& op, A... x) { return op(static_cast<float>(x)...); }
template <class Op, class... A> constexpr std::int64_t on_int(const Op& op, A... x) {
  return op(static_cast<std::int64_t>(x)...);
}
template <class Op, class... A> constexpr std::uint64_t on_unsigned(const Op& op, A... x) {
  return op(static_cast<std::uint64_t>(x)...);
}
template <class Op, class... A> constexpr bool holds(const Op& op, A... x) { return op(static_cast<float>(x)...); }

static_assert(on(op::abs{}, -2.5) == 2.5f && on_int(op::abs{}, -7) == 7 && on_unsigned(op::abs{}, 7) == 7);
static_assert(on_int(op::abs{}, i64_least) == i64_least);
static_assert(on(op::add{}, 1.5, 2) == 3.5f && on_int(op::add{}, i64_most, 1) == i64_least);
static_assert(on(op::sub{}, 1.5, 2) == -0.5f && on_int(op::sub{}, i64_least, 1) == i64_most);
static_assert(on(op::mul{}, 1.5, 2) == 3 && on_int(op::mul{}, i64_most, 2) == -2);
static_assert(on_unsigned(op::sub{}, 1, 2) == ~std::uint64_t{0});
static_assert(on(op::neg{}, 1.5) == -1.5f && on_int(op::neg{}, i64_least) == i64_least);
static_assert(on_unsigned(op::neg{}, 1) == ~std::uint64_t{0});
static_assert(on(op::square_difference{}, 1, 3.5) == 6.25f && on_int(op::square_difference{}, 1, 4) == 9);

static_assert(on(op::div{}, 1, 4) == 0.25f);
static_assert(on_int(op::div{}, 7, 2) == 3 && on_int(op::div{}, -7, 2) == -3 && on_int(op::div{}, 7, -2) == -3);
static_assert(on_int(op::div{}, 7, -1) == -7 && on_int(op::div{}, i64_least, -1) == i64_least);
static_assert(on_int(op::div{}, 7, 0) == 0 && on_unsigned(op::div{}, 7, 0) == 0);
static_assert(on_unsigned(op::div{}, ~std::uint64_t{0}, ~std::uint64_t{0}) == 1 && on_unsigned(op::div{}, 7, 2) == 3);

static_assert(on(op::fmod{}, 5.5, -2) == 1.5f && on(op::fmod{}, -5.5, 2) == -1.5f);
static_assert(on_int(op::fmod{}, 7, -3) == 1 && on_int(op::fmod{}, -7, 3) == -1 && on_int(op::fmod{}, 7, 0) == 7);
static_assert(on_int(op::fmod{}, i64_least, -1) == 0 && on_unsigned(op::fmod{}, 7, 4) == 3);
static_assert(on(op::mod{}, 5.5, -2) == -0.5f && on(op::mod{}, -5.5, 2) == 0.5f && on(op::mod{}, -4, 2) == 0);
static_assert(on_int(op::mod{}, 7, -3) == -2 && on_int(op::mod{}, -7, 3) == 2 && on_int(op::mod{}, 7, 0) == 7);
static_assert(on_int(op::mod{}, i64_least, -1) == 0 && on_int(op::mod{}, 6, -3) == 0);
static_assert(on_unsigned(op::mod{}, 7, 0) == 7 && on_unsigned(op::mod{}, 7, 4) == 3);
static_assert(on(op::pow{}, 2, 10) == 1024 && on(op::pow{}, -2, 3) == -8 && on(op::pow{}, 9, 0.5) == 3);
static_assert(on_int(op::pow{}, -3, 3) == -27 && on_int(op::pow{}, 7, 0) == 1 && on_int(op::pow{}, 2, -1) == 0);
static_assert(on_int(op::pow{}, -1, -3) == -1 && on_int(op::pow{}, -1, -2) == 1 && on_unsigned(op::pow{}, 3, 4) == 81);

static_assert(on(op::min{}, 1, -2) == -2 && on_int(op::min{}, 1, -2) == -2);
static_assert(on(op::max{}, 1, -2) == 1 && on_int(op::max{}, 1, -2) == 1);
static_assert(on(op::clip{}, 5, -1, 2) == 2 && on(op::clip{}, -5, -1, 2) == -1 && on(op::clip{}, 1, -1, 2) == 1);
static_assert(on(op::clip{}, 0, 3, 2) == 2 && on_int(op::clip{}, 9, 0, 6) == 6);

static_assert(holds(op::equal{}, 1, 1) && !holds(op::equal{}, 1, 2) && op::equal{}(true, true));
static_assert(holds(op::less{}, 1, 2) && !holds(op::less{}, 2, 2) && !holds(op::less{}, 3, 2));
static_assert(holds(op::greater{}, 2, 1) && !holds(op::greater{}, 2, 2) && !holds(op::greater{}, 2, 3));
static_assert(holds(op::less_or_equal{}, 2, 2) && !holds(op::less_or_equal{}, 3, 2));
static_assert(holds(op::greater_or_equal{}, 2, 2) && !holds(op::greater_or_equal{}, 2, 3));
static_assert(on_int(op::less{}, -1, 0) == 1 && on_unsigned(op::less{}, ~std::uint64_t{0}, 0) == 0);

static_assert(op::logical_and{}(true, true) && !op::logical_and{}(true, false));
static_assert(op::logical_or{}(false, true) && !op::logical_or{}(false, false));
static_assert(op::logical_xor{}(false, true) && !op::logical_xor{}(true, true));
static_assert(op::logical_not{}(false) && !op::logical_not{}(true));
static_assert(on_int(op::bitwise_and{}, 12, 10) == 8 && on_int(op::bitwise_or{}, 12, 10) == 14);
static_assert(on_int(op::bitwise_xor{}, 12, 10) == 6 && on_int(op::bitwise_not{}, 5) == -6);
static_assert(on_int(op::shift_left{}, 3, 2) == 12 && on_unsigned(op::shift_left{}, 1, 63) == std::uint64_t{1} << 63);
static_assert(on_unsigned(op::shift_left{}, 1, 64) == 0 && on_int(op::shift_left{}, 1, -1) == 0);
static_assert(on_int(op::shift_right{}, -8, 1) == -4 && on_int(op::shift_right{}, -8, 64) == -1);
static_assert(on_int(op::shift_right{}, 8, 100) == 0 && on_unsigned(op::shift_right{}, ~std::uint64_t{0}, 63) == 1);

static_assert(on(op::ceil{}, 1.25) == 2 && on(op::ceil{}, -1.25) == -1);
static_assert(on(op::floor{}, 1.25) == 1 && on(op::floor{}, -1.25) == -2);
static_assert(on(op::round{}, 0.5) == 0 && on(op::round{}, 1.5) == 2 && on(op::round{}, -2.5) == -2);
static_assert(on(op::sign{}, -3) == -1 && on(op::sign{}, 0) == 0 && on(op::sign{}, 3) == 1);
static_assert(on_int(op::sign{}, -3) == -1 && on_unsigned(op::sign{}, 3) == 1);
static_assert(on(op::sqrt{}, 6.25) == 2.5f && on(op::rsqrt{}, 0.25) == 2 && on(op::recip{}, 4) == 0.25f);

static_assert(on(op::relu{}, 2) == 2 && on(op::relu{}, -2) == 0 && on_int(op::relu{}, -2) == 0);
static_assert(on(op::leaky_relu{0.5f}, 3) == 3 && on(op::leaky_relu{0.5f}, -3) == -1.5f);
static_assert(on(op::prelu{}, 3, 0.5) == 3 && on(op::prelu{}, -3, 0.5) == -1.5f && on_int(op::prelu{}, -3, 2) == -6);
static_assert(on(op::thresholded_relu{2}, 2) == 0 && on(op::thresholded_relu{2}, 2.5) == 2.5f);
static_assert(on(op::shrink{1, 0.5f}, 2) == 1.5f && on(op::shrink{1, 0.5f}, -2) == -1.5f &&
              on(op::shrink{1, 0.5f}, 1) == 0 && on(op::shrink{1, 0.5f}, -1) == 0);
static_assert(on(op::hard_sigmoid{}, 0) == 0.5f && on(op::hard_sigmoid{}, 9) == 1 && on(op::hard_sigmoid{}, -9) == 0);
static_assert(on(op::hard_sigmoid{0.25f, 0.125f}, 1) == 0.375f);
static_assert(on(op::hard_swish{}, 4) == 4 && on(op::hard_swish{}, -4) == 0 && on(op::hard_swish{}, 0) == 0);
static_assert(on(op::softsign{}, -1) == -0.5f && on(op::softsign{}, 3) == 0.75f);
static_assert(on(op::elu{2}, 3) == 3 && on(op::celu{2}, 3) == 3 && on(op::selu{2, 3}, 1) == 3);
static_assert(on(op::gelu{}, 0) == 0 && on(op::mish{}, 0) == 0 && on(op::sigmoid{}, 0) == 0.5f);
static_assert(on(op::identity{}, 1.5) == 1.5f && op::identity{}(true) && on_int(op::identity{}, -3) == -3);
static_assert(op::where{}(true, 1, 2) == 1 && op::where{}(false, 1, 2) == 2);

// --- through the reference computation ------------------------------------------------------------------------------

static_assert(run(op::add{}, f32({2}, 1, 2), f32({2}, 3, 4)) == f32({2}, 4, 6));
static_assert(run(op::add{}, f32({}, 1), f32({}, 3)) == f32({}, 4));
static_assert(run(op::add{}, f32({0, 3}), f32({0, 3})).elements() == 0);
static_assert(run(op::add{}, lit(dtype::i8, {2}, 100, -100), lit(dtype::i8, {2}, 100, -100)) ==
              lit(dtype::i8, {2}, -56, 56));
static_assert(run(op::sub{}, lit(dtype::u8, {1}, 1), lit(dtype::u8, {1}, 2)) == lit(dtype::u8, {1}, 255));
static_assert(run(op::shift_left{}, lit(dtype::u8, {1}, 129), lit(dtype::u8, {1}, 1)) == lit(dtype::u8, {1}, 2));
static_assert(run(op::bitwise_not{}, lit(dtype::u16, {1}, 1)) == lit(dtype::u16, {1}, 65534));
static_assert(run(op::neg{}, lit(dtype::i16, {1}, -32768)) == lit(dtype::i16, {1}, -32768));
static_assert(run(op::add{}, lit(dtype::f16, {1}, 2048), lit(dtype::f16, {1}, 1)) == lit(dtype::f16, {1}, 2048));
static_assert(run(op::add{}, lit(dtype::bf16, {1}, 256), lit(dtype::bf16, {1}, 1)) == lit(dtype::bf16, {1}, 256));
static_assert(run(op::less{}, f32({2}, 1, 3), f32({2}, 2, 2)) == lit(dtype::boolean, {2}, true, false));
static_assert(run(op::where{}, lit(dtype::boolean, {2}, true, false), lit(dtype::u32, {2}, 1, 2),
                  lit(dtype::u32, {2}, 3, 4)) == lit(dtype::u32, {2}, 1, 4));
static_assert(run(op::convert{dtype::i32}, f32({3}, -1.75, 2.5, 1e20)) == lit(dtype::i32, {3}, -1, 2, 2147483647));
static_assert(run(op::convert{dtype::u8}, lit(dtype::i64, {2}, 257, -1)) == lit(dtype::u8, {2}, 1, 255));
static_assert(run(op::convert{dtype::boolean}, f32({3}, 0, -0.0, 0.5)) == lit(dtype::boolean, {3}, false, false, true));
static_assert(run(op::convert{dtype::f16}, lit(dtype::f64, {1}, 2049)) == lit(dtype::f16, {1}, 2048));
static_assert(run(op::convert{dtype::f32}, lit(dtype::boolean, {1}, true)) == f32({1}, 1));

// --- transcendental and composed ops against long double ------------------------------------------------------------

using wide = long double;

struct interval {
  double low, high;
};

// Bounds are in units of the result's last place; `floor` is the magnitude below which the error counts as absolute.
template <class T>
void near_oracle(const op_table& op, const void* attributes, wide (*oracle)(wide), interval d, double ulps,
                 double floor) {
  constexpr int points = 4001;
  std::vector<T> x(points), y(points);
  for (int i = 0; i < points; ++i) x[i] = static_cast<T>(d.low + (d.high - d.low) * i / (points - 1));
  const void* in[] = {x.data()};
  op.tile(attributes, dtype_of<T>, in, y.data(), points);
  double worst = 0, where = 0;
  for (int i = 0; i < points; ++i) {
    const wide expected = oracle(x[i]);
    const wide scale = std::max(std::abs(expected), static_cast<wide>(floor)) * std::numeric_limits<T>::epsilon();
    const auto error = static_cast<double>(std::abs(y[i] - expected) / scale);
    if (error <= worst) continue;
    worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    where = static_cast<double>(x[i]);
  }
  EXPECT_LE(worst, ulps) << op.name << " of " << to_string(dtype_of<T>) << " at " << where;
}
template <class Op>
void near(const Op& op, wide (*oracle)(wide), interval d = {-20, 20}, double ulps = 3, double floor = 1e-30) {
  const op_table& table = *detail::find_built_in(type_name<Op>());
  near_oracle<float>(table, &op, oracle, d, ulps, floor);
  near_oracle<double>(table, &op, oracle, d, ulps, floor);
}

wide soft(wide x) { return std::max(x, wide(0)) + std::log1p(std::exp(-std::abs(x))); }

TEST(pointwise, elementary_functions_match_the_library) {
  near(op::acos{}, [](wide x) { return std::acos(x); }, {-1, 1});
  near(op::acosh{}, [](wide x) { return std::acosh(x); }, {1, 1e6});
  near(op::asin{}, [](wide x) { return std::asin(x); }, {-1, 1});
  near(op::asinh{}, [](wide x) { return std::asinh(x); });
  near(op::atan{}, [](wide x) { return std::atan(x); });
  near(
      op::atanh{}, [](wide x) { return std::atanh(x); }, {-0.99, 0.99}, 4);
  near(op::cos{}, [](wide x) { return std::cos(x); });
  near(op::cosh{}, [](wide x) { return std::cosh(x); });
  near(op::sin{}, [](wide x) { return std::sin(x); });
  near(op::sinh{}, [](wide x) { return std::sinh(x); });
  near(
      op::tan{}, [](wide x) { return std::tan(x); }, {-20, 20}, 4);
  near(op::tanh{}, [](wide x) { return std::tanh(x); });
  near(op::exp{}, [](wide x) { return std::exp(x); });
  near(op::expm1{}, [](wide x) { return std::expm1(x); });
  near(op::erf{}, [](wide x) { return std::erf(x); }, {-6, 6});
  near(op::log{}, [](wide x) { return std::log(x); }, {1e-6, 1e6});
  near(op::log1p{}, [](wide x) { return std::log1p(x); }, {-0.999, 1e3});
  near(
      op::sqrt{}, [](wide x) { return std::sqrt(x); }, {0, 1e6}, 0.5);
  near(op::rsqrt{}, [](wide x) { return 1 / std::sqrt(x); }, {1e-6, 1e6});
  near(
      op::recip{}, [](wide x) { return 1 / x; }, {1e-6, 1e6}, 0.5);
}

TEST(pointwise, activations_match_their_formulas) {
  near(op::sigmoid{}, [](wide x) { return 1 / (1 + std::exp(-x)); });
  near(op::softplus{}, soft, {-20, 20}, 4);
  near(op::softsign{}, [](wide x) { return x / (1 + std::abs(x)); });
  near(
      op::mish{}, [](wide x) { return x * std::tanh(soft(x)); }, {-20, 20}, 6);
  near(
      op::gelu{}, [](wide x) { return x * std::erfc(-x / std::sqrt(wide(2))) / 2; }, {-6, 6}, 8, 1);
  near(
      op::gelu{true}, [](wide x) { return x / 2 * (1 + std::tanh(0.7978845608028654L * (x + 0.044715L * x * x * x))); },
      {-6, 6}, 8, 1);
  near(op::elu{0.5f}, [](wide x) { return x > 0 ? x : std::expm1(x) / 2; });
  near(op::celu{2}, [](wide x) { return x > 0 ? x : 2 * std::expm1(x / 2); });
  near(op::selu{1.5f, 2}, [](wide x) { return x > 0 ? 2 * x : 3 * std::expm1(x); });
  near(op::selu{},
       [](wide x) { return 1.05070102214813232421875L * (x > 0 ? x : 1.67326319217681884765625L * std::expm1(x)); });
  near(op::leaky_relu{0.25f}, [](wide x) { return x > 0 ? x : x / 4; });
  near(
      op::hard_sigmoid{0.25f, 0.5f}, [](wide x) { return std::clamp<wide>(x / 4 + 0.5L, 0, 1); }, {-4, 4}, 2, 1);
  near(
      op::hard_swish{}, [](wide x) { return x * std::clamp<wide>(x / 6 + 0.5L, 0, 1); }, {-6, 6}, 3, 1);
}

TEST(pointwise, two_argument_floats_match_the_library) {
  for (double x = -7.3; x < 8; x += 0.61)
    for (double y = -5.2; y < 6; y += 0.43) {
      const auto a = static_cast<float>(x), b = static_cast<float>(y);
      EXPECT_EQ(op::fmod{}(a, b), std::fmod(a, b));
      EXPECT_EQ(op::fmod{}(x, y), std::fmod(x, y));
      EXPECT_NEAR(op::mod{}(x, y), x - std::floor(x / y) * y, 1e-12);
      EXPECT_NEAR(op::pow{}(std::abs(x), y), std::pow(std::abs(x), y), 1e-14 * std::pow(std::abs(x), y));
      EXPECT_EQ(op::div{}(a, b), a / b);
    }
}

// --- special values -------------------------------------------------------------------------------------------------

TEST(pointwise, nan_goes_through_where_the_formula_has_it) {
  const float nan = f32_limits::quiet_NaN();
  EXPECT_TRUE(std::isnan(op::relu{}(nan)));
  EXPECT_TRUE(std::isnan(op::leaky_relu{}(nan)));
  EXPECT_TRUE(std::isnan(op::prelu{}(nan, 1.0f)));
  EXPECT_TRUE(std::isnan(op::elu{}(nan)) && std::isnan(op::celu{}(nan)) && std::isnan(op::selu{}(nan)));
  EXPECT_TRUE(std::isnan(op::sign{}(nan)) && std::isnan(op::round{}(nan)) && std::isnan(op::hard_swish{}(nan)));
  EXPECT_TRUE(std::isnan(op::hard_sigmoid{}(nan)) && std::isnan(op::softplus{}(nan)) && std::isnan(op::gelu{}(nan)));
  for (const auto& [a, b] : {std::pair{nan, 1.0f}, {1.0f, nan}}) {
    EXPECT_TRUE(std::isnan(op::min{}(a, b)) && std::isnan(op::max{}(a, b)));
    EXPECT_FALSE(op::equal{}(a, b) || op::less{}(a, b) || op::greater{}(a, b));
    EXPECT_FALSE(op::less_or_equal{}(a, b) || op::greater_or_equal{}(a, b));
  }
  EXPECT_TRUE(std::isnan(op::clip{}(nan, 0.0f, 1.0f)));
  EXPECT_FALSE(op::equal{}(nan, nan));
  EXPECT_TRUE(op::is_nan{}(nan));
  EXPECT_FALSE(op::is_nan{}(f32_limits::infinity()));
  EXPECT_TRUE(std::isnan(op::sqrt{}(-1.0f)) && std::isnan(op::log{}(-1.0f)) && std::isnan(op::acosh{}(0.5f)));
}

TEST(pointwise, infinities_saturate) {
  const float inf = f32_limits::infinity();
  EXPECT_EQ(op::sigmoid{}(inf), 1);
  EXPECT_EQ(op::sigmoid{}(-inf), 0);
  EXPECT_EQ(op::softplus{}(inf), inf);
  EXPECT_EQ(op::softplus{}(-inf), 0);
  EXPECT_EQ(op::elu{2}(-inf), -2);
  EXPECT_EQ(op::mish{}(inf), inf);
  EXPECT_EQ(op::gelu{}(inf), inf);
  EXPECT_EQ(op::exp{}(-inf), 0);
  EXPECT_EQ(op::log{}(0.0f), -inf);
  EXPECT_EQ(op::recip{}(0.0f), inf);
  EXPECT_TRUE(std::signbit(op::ceil{}(-0.5f)) && std::signbit(op::round{}(-0.25f)));
}

TEST(pointwise, is_inf_looks_for_the_signs_asked_for) {
  const float inf = f32_limits::infinity(), nan = f32_limits::quiet_NaN();
  for (const bool down : {false, true})
    for (const bool up : {false, true}) {
      const op::is_inf op{.detect_negative = down, .detect_positive = up};
      EXPECT_EQ(op(inf), up);
      EXPECT_EQ(op(-inf), down);
      EXPECT_FALSE(op(nan) || op(1.0f) || op(f32_limits::max()));
    }
}

// --- dtypes at run time, symbolic dims ------------------------------------------------------------------------------

TEST(pointwise, every_dtype_adds_as_its_own_type) {
  for (unsigned t = 0; t + 1 < dtype_count; ++t) {
    const auto type = static_cast<dtype>(t);
    const literal x = lit(type, {3}, 1, 100, 120), y = lit(type, {3}, 2, 27, 120);
    const literal sum = compiled(op::add{}, x, y);
    EXPECT_EQ(sum.get_shape().type, type);
    EXPECT_EQ(sum.at<double>(0), 3);
    EXPECT_EQ(sum.at<double>(1), 127);
    EXPECT_EQ(sum.at<double>(2), type == dtype::i8 ? -16 : 240);
    EXPECT_EQ(run(op::add{}, x, y), sum);
  }
}

TEST(pointwise, every_pair_of_dtypes_converts) {
  for (unsigned from = 0; from < dtype_count; ++from)
    for (unsigned to = 0; to < dtype_count; ++to) {
      const literal x = lit(static_cast<dtype>(from), {2}, 0, 1);
      const literal y = compiled(op::convert{static_cast<dtype>(to)}, x);
      EXPECT_EQ(y, lit(static_cast<dtype>(to), {2}, 0, 1));
    }
}

TEST(pointwise, integer_division_by_zero_is_survived) {
  const literal x = lit(dtype::i32, {4}, 5, -5, -2147483648ll, 7), y = lit(dtype::i32, {4}, 0, 0, -1, 2);
  EXPECT_EQ(compiled(op::div{}, x, y), lit(dtype::i32, {4}, 0, 0, -2147483648ll, 3));
  EXPECT_EQ(compiled(op::mod{}, x, y), lit(dtype::i32, {4}, 5, -5, 0, 1));
  EXPECT_EQ(compiled(op::fmod{}, x, y), lit(dtype::i32, {4}, 5, -5, 0, 1));
}

TEST(pointwise, shape_arithmetic_folds_over_symbols) {
  const dimension n = dimension::symbol("n", 1, 100);
  const literal x = symbols(n, dimension(6)), y = i64({2}, 2, 4);
  EXPECT_EQ(compiled(op::add{}, x, y), symbols(n + 2, dimension(10)));
  EXPECT_EQ(compiled(op::sub{}, x, y), symbols(n - 2, dimension(2)));
  EXPECT_EQ(compiled(op::mul{}, x, y), symbols(n * 2, dimension(24)));
  EXPECT_EQ(compiled(op::div{}, x, y), symbols(n / 2, dimension(1)));
  EXPECT_EQ(compiled(op::mod{}, x, y), symbols(n % 2, dimension(2)));
  EXPECT_EQ(compiled(op::neg{}, x), symbols(-n, dimension(-6)));
  EXPECT_EQ(compiled(op::min{}, symbols(n), i64({1}, 200)), symbols(n));
  EXPECT_EQ(compiled(op::max{}, symbols(n), i64({1}, 1)), symbols(n));
  EXPECT_EQ(compiled(op::clip{}, symbols(n), i64({1}, 0), i64({1}, 100)), symbols(n));
  EXPECT_EQ(compiled(op::square_difference{}, symbols(n), symbols(n + 3)), i64({1}, 9));
  EXPECT_EQ(compiled(op::identity{}, x), x);
  EXPECT_EQ(compiled(op::convert{dtype::i32}, x).to<dimension>()[0], n);
  EXPECT_EQ(compiled(op::where{}, lit(dtype::boolean, {2}, true, false), x, y), symbols(n, dimension(4)));
}

TEST(pointwise, symbols_compare_where_every_size_agrees) {
  const dimension n = dimension::symbol("n", 1, 100);
  const auto yes = lit(dtype::boolean, {1}, true), no = lit(dtype::boolean, {1}, false);
  EXPECT_EQ(compiled(op::equal{}, symbols(n), symbols(n)), yes);
  EXPECT_EQ(compiled(op::equal{}, symbols(n), i64({1}, -1)), no);
  EXPECT_EQ(compiled(op::less{}, symbols(n), symbols(n + 1)), yes);
  EXPECT_EQ(compiled(op::less{}, symbols(n), symbols(n)), no);
  EXPECT_EQ(compiled(op::greater{}, symbols(n), i64({1}, 0)), yes);
  EXPECT_EQ(compiled(op::greater{}, symbols(n), symbols(n)), no);
  EXPECT_EQ(compiled(op::less_or_equal{}, symbols(n), i64({1}, 100)), yes);
  EXPECT_EQ(compiled(op::less_or_equal{}, symbols(n), i64({1}, 0)), no);
  EXPECT_EQ(compiled(op::greater_or_equal{}, symbols(n), symbols(n)), yes);
  EXPECT_EQ(compiled(op::greater_or_equal{}, symbols(n), i64({1}, 101)), no);
  EXPECT_THROW(compiled(op::equal{}, symbols(n), i64({1}, 5)), error);
  EXPECT_THROW(compiled(op::less{}, symbols(n), i64({1}, 5)), error);
}

}  // namespace
}  // namespace kiln::test

// Scales and zero points are those of ONNX Runtime's quantization tool: its conventions, type by type.
#include "kiln/op/quant/range.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace kiln::quantize {
namespace {

constexpr double r = 3.0;

static_assert(*parameters_for({-1, r - 1}, {dtype::u8}) == parameters{static_cast<float>(r / 255), 85});
static_assert(*parameters_for({-1, r - 1}, {dtype::i8}) == parameters{static_cast<float>(r / 255), -43});
static_assert(*parameters_for({-1, 2}, {dtype::u8, true}) == parameters{static_cast<float>(4.0 / 254), 127});
static_assert(*parameters_for({-1, 2}, {dtype::u8, false, true}) == parameters{static_cast<float>(3.0 / 127), 42});
static_assert(*parameters_for({-1, 2}, {dtype::u8, true, true}) == parameters{static_cast<float>(4.0 / 127), 64});
static_assert(*parameters_for({-1, 2}, {dtype::i8, true, true}) == parameters{static_cast<float>(4.0 / 128), 0});
static_assert(*parameters_for({-1, 2}, {dtype::i16, true}) == parameters{static_cast<float>(4.0 / 65534), 0});
static_assert(*parameters_for({-1, 2}, {dtype::i16}) == parameters{static_cast<float>(3.0 / 65535), -10923});
static_assert(*parameters_for({-1, 2}, {dtype::i16, false, true}) ==
              parameters{static_cast<float>(3.0 / 32768), -5461});
static_assert(*parameters_for({-1, 2}, {dtype::u16, true}) == parameters{static_cast<float>(4.0 / 65534), 32767});
static_assert(*parameters_for({-1, 2}, {dtype::u16}) == parameters{static_cast<float>(3.0 / 65535), 21845});
static_assert(*parameters_for({-1, 2}, {dtype::u16, false, true}) ==
              parameters{static_cast<float>(3.0 / 32767), 10922});
static_assert(*parameters_for({-1, 2}, {dtype::i4}) == parameters{static_cast<float>(3.0 / 15), -3});
static_assert(*parameters_for({-1, 2}, {dtype::i4, true}) == parameters{static_cast<float>(4.0 / 15), 0});
static_assert(*parameters_for({-1, 2}, {dtype::i4, false, true}) == parameters{static_cast<float>(3.0 / 7), -2});
static_assert(*parameters_for({-1, 2}, {dtype::u4}) == parameters{static_cast<float>(3.0 / 15), 5});
static_assert(*parameters_for({-1, 2}, {dtype::u4, true}) == parameters{static_cast<float>(4.0 / 15), 8});

static_assert(*parameters_for({-500, 448}, {dtype::f8e4m3fn}) == parameters{500.0f / 448, 0});
static_assert(*parameters_for({-1, 240}, {dtype::f8e4m3fnuz}) == parameters{1, 0});
static_assert(*parameters_for({0, 57344}, {dtype::f8e5m2}) == parameters{1, 0});
static_assert(*parameters_for({0, 28672}, {dtype::f8e5m2fnuz}) == parameters{0.5f, 0});

// ranges are widened to hold 0, and to the least width
static_assert(parameters_for({2, 3}, {dtype::u8})->zero_point == 0);
static_assert(*parameters_for({2, 3}, {dtype::u8}) == *parameters_for({0, 3}, {dtype::u8}));
static_assert(*parameters_for({-3, -2}, {dtype::u8}) == parameters{static_cast<float>(3.0 / 255), 255});
static_assert(*parameters_for({0, 0.1}, {.type = dtype::u8, .least_width = 1}) == *parameters_for({0, 1}, {dtype::u8}));

// what has no width, or less than a float can say
static_assert(*parameters_for({0, 0}, {dtype::i8, true}) == parameters{1, 0});
static_assert(*parameters_for({0, 0}, {dtype::f8e4m3fn}) == parameters{1, 0});
static_assert(*parameters_for({-1e-42, 1e-42}, {dtype::u8}) == parameters{1, 0});

static_assert(!parameters_for({0, 1}, {dtype::f32}) && !parameters_for({0, 1}, {dtype::i64}));
static_assert(!parameters_for({1, 0}, {dtype::i8}));
static_assert(!parameters_for_deviation(1, dtype::i8));

static_assert(*covered({0.5f, 0}, {dtype::i8, true}) == range{-63.5, 63.5});
static_assert(*covered({2, 127}, {dtype::u8}) == range{-254, 256});
static_assert(*covered({2, 0}, {dtype::f8e4m3fn}) == range{-896, 896});

static_assert(range{1, 2}.with_zero() == range{0, 2} && range{-3, 2}.mirrored() == range{-3, 3});
static_assert(range{1, 2}.joined({-1, 1.5}) == range{-1, 2});

TEST(range, halves_round_to_even) {
  EXPECT_EQ(detail::round_to_even(0.5), 0);
  EXPECT_EQ(detail::round_to_even(1.5), 2);
  EXPECT_EQ(detail::round_to_even(-2.5), -2);
  EXPECT_EQ(detail::round_to_even(-2.6), -3);
}

TEST(range, deviations_of_floats_of_eight_bits) {
  // numpy.std over the 254, 255 or 248 finite values of each type
  EXPECT_NEAR(deviation_of(dtype::f8e4m3fn), 100.057726, 1e-5);
  EXPECT_NEAR(deviation_of(dtype::f8e4m3fnuz), 54.266349, 1e-5);
  EXPECT_EQ(deviation_of(dtype::i8), 0);
  EXPECT_FLOAT_EQ(parameters_for_deviation(2, dtype::f8e4m3fn).value().scale,
                  static_cast<float>(2 / 100.05772608660494));
}

TEST(range, faults_say_what_is_wrong) {
  const auto wrong = parameters_for({0, std::nan("")}, {dtype::i8});
  EXPECT_EQ(wrong.why().code, errc::invalid_argument);
  EXPECT_EQ(codes_of({dtype::f32}).why().found.view(), "f32");
}

TEST(range, a_scale_is_a_float) {
  EXPECT_TRUE(parameters_for({0, 3e38}, {dtype::u8}));
  const auto made = parameters_for({0, 1e300}, {dtype::u8});
  ASSERT_FALSE(made);
  EXPECT_NE(std::string(error(made.why()).what()).find("a number of f32"), std::string::npos);
}

}  // namespace
}  // namespace kiln::quantize

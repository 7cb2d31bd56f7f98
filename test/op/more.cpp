#include "kiln/op/more.hpp"

#include <cmath>
#include <complex>
#include <numbers>

#include "oracle.hpp"

// The ops beside the default registry.
namespace kiln::test {
namespace {

using namespace kiln::op;  // NOLINT: some ops
constexpr auto F = dtype::f32, I = dtype::i64;

// Both ways to run, where literals have names.
template <class Op, class... L> void expect_run(const literal& expected, const Op& op, const L&... in) {
  EXPECT_TRUE(run(op, in...) == expected);
  EXPECT_TRUE(run_bytes_all(op, in...)[0] == expected);
}

// cumprod

static_assert(shape_from(cumprod{1}, shape{F, {2, 3}}) == shape{F, {2, 3}});
static_assert(fails(cumprod{2}, errc::shape_mismatch, "the axis lies within the rank", shape{F, {2, 3}}));
TEST(cumprod, multiplies_on_both_ways) {
  KILN_EXPECT_RUN(f32({2, 3}, 1, 2, 6, 4, 20, 120), cumprod{1}, f32({2, 3}, 1, 2, 3, 4, 5, 6));
  KILN_EXPECT_RUN(f32({3}, 1, 2, 6), (cumprod{0, true}), f32({3}, 2, 3, 4));
  KILN_EXPECT_RUN(i64({3}, 24, 12, 4), (cumprod{0, false, true}), i64({3}, 2, 3, 4));
  KILN_EXPECT_RUN(i64({3}, 12, 4, 1), (cumprod{0, true, true}), i64({3}, 2, 3, 4));
}

// bit_cast

static_assert(shape_from(op::bit_cast{dtype::u16}, shape{dtype::f16, {4}}) == shape{dtype::u16, {4}});
static_assert(fails(op::bit_cast{dtype::i4}, errc::shape_mismatch, "both dtypes have one width",
                    shape{dtype::i8, {2}}));
static_assert(fails(op::bit_cast{dtype::i64}, errc::shape_mismatch, "both dtypes have one width", shape{F, {2}}));
static_assert(fails(op::bit_cast{dtype::i64}, errc::unsupported, "dtype", shape{dtype::string, {2}}));
TEST(bit_cast, keeps_bits) {
  KILN_EXPECT_RUN(lit(dtype::i32, {2}, 0x3f800000, -0x40000000), op::bit_cast{dtype::i32}, f32({2}, 1, -2));
  KILN_EXPECT_RUN(f32({1}, 1), op::bit_cast{F}, lit(dtype::i32, {1}, 0x3f800000));
  KILN_EXPECT_RUN(lit(dtype::u8, {2}, 255, 128), op::bit_cast{dtype::u8}, lit(dtype::i8, {2}, -1, -128));
  KILN_EXPECT_RUN(lit(dtype::u16, {1}, 0x3c00), op::bit_cast{dtype::u16}, lit(dtype::f16, {1}, 1));
}

// block_dequantize

constexpr shape B{dtype::u8, {2, 3}};  // bytes
static_assert(shape_from(block_dequantize{.bits = 4, .block = 4}, B, shape{F, {2, 2}}) == shape{F, {2, 6}});
static_assert(shape_from(block_dequantize{.bits = 4, .block = 4, .extent = 5}, B, shape{F, {2, 2}},
                         shape{dtype::u8, {2, 1}}) == shape{F, {2, 5}});
static_assert(fails(block_dequantize{.bits = 3}, errc::unsupported, "bits of a field", B, shape{F, {2, 1}}));
static_assert(fails(block_dequantize{.axis = 2}, errc::shape_mismatch, "the axis of the blocks lies within the rank", B,
                    shape{F, {2, 1}}));
static_assert(fails(block_dequantize{.block = 0}, errc::invalid_argument, "elements of a block", B, shape{F, {2, 1}}));
static_assert(fails(block_dequantize{.block = (1 << 20) + 1}, errc::invalid_argument, "elements of a block", B,
                    shape{F, {2, 1}}));
static_assert(fails(block_dequantize{.block = 0x7fff'ffff'ffff'ffff}, errc::invalid_argument, "elements of a block", B,
                    shape{F, {2, 1}}));
static_assert(shape_from(block_dequantize{.block = 1 << 20}, B, shape{F, {2, 1}}).type == F);
static_assert(fails(block_dequantize{.bits = 4}, errc::unsupported, "dtype of the data", shape{dtype::i8, {2, 3}},
                    shape{F, {2, 1}}));
static_assert(fails(block_dequantize{}, errc::unsupported, "dtype of the data", shape{dtype::i16, {2, 3}},
                    shape{F, {2, 1}}));
static_assert(fails(block_dequantize{}, errc::unsupported, "dtype of the scales", B, shape{I, {2, 1}}));
static_assert(fails(block_dequantize{.block = 2}, errc::shape_mismatch, "extents of the scales: one for each block", B,
                    shape{F, {2, 1}}));
static_assert(fails(block_dequantize{.bits = 4, .extent = 7}, errc::shape_mismatch,
                    "the extent lies within the data's fields", B, shape{F, {2, 1}}));
static_assert(fails(block_dequantize{}, errc::unsupported, "dtype of the zero points", B, shape{F, {2, 1}},
                    shape{dtype::i8, {2, 1}}));
static_assert(fails(block_dequantize{.bits = 4, .block = 2}, errc::shape_mismatch, "extents of the zero points", B,
                    shape{F, {2, 3}}, shape{dtype::u8, {2, 3}}));
TEST(block_dequantize, unpacks_fields_from_the_lowest) {
  const literal bytes = lit(dtype::u8, {1, 3}, 0x21, 0x43, 0xf8), scale = f32({1, 2}, 1, 10);
  const block_dequantize four{.bits = 4, .block = 4, .zero = 1};
  expect_run(f32({1, 6}, 0, 1, 2, 3, 70, 140), four, bytes, scale);
  expect_run(f32({1, 6}, -1, 0, 1, 2, 70, 140), block_dequantize{.bits = 4, .block = 4}, bytes, scale,
             lit(dtype::u8, {1, 1}, 0x12));
  expect_run(f32({1, 5}, .5, 1.5, 2.5, 3.5, 60), block_dequantize{.bits = 4, .block = 4, .extent = 5}, bytes, scale,
             f32({1, 2}, .5, 2));
  KILN_EXPECT_RUN(f32({1, 4}, 3, 2, 1, 0), (block_dequantize{.bits = 2, .block = 4}), lit(dtype::u8, {1, 1}, 0x1b),
                  f32({1, 1}, 1));
}
TEST(block_dequantize, blocks_lie_along_any_axis) {
  const literal data = lit(dtype::i8, {3, 2}, -1, 2, -3, 4, 5, -6), scale = f32({2, 2}, 1, 10, 100, 1000);
  expect_run(f32({3, 2}, -1, 20, -3, 40, 500, -6000), block_dequantize{.axis = 0, .block = 2}, data, scale);
  expect_run(f32({3, 2}, -2, 20, -4, 40, 700, -5000), block_dequantize{.axis = 0, .block = 2}, data, scale,
             lit(dtype::i8, {2, 2}, 1, 0, -2, -1));
}

// det

static_assert(shape_from(det{}, shape{F, {5, 3, 3}}) == shape{F, {5}});
static_assert(fails(det{}, errc::shape_mismatch, "the operand holds square matrices", shape{F, {2, 3}}));
TEST(det, eliminates_with_pivots) {
  KILN_EXPECT_RUN(f32({}, -2), det{}, f32({2, 2}, 4, 3, 2, 1));
  KILN_EXPECT_RUN(f32({2}, -6, 0), det{}, f32({2, 2, 2}, 0, 2, 3, 1, 1, 2, 2, 4));
  KILN_EXPECT_RUN(f32({}, 1), det{}, f32({0, 0}));
}

// inverse

static_assert(rule(inverse{}, shape{F, {5, 3, 3}}).value()[0] == shape{F, {5, 3, 3}});
static_assert(fails(inverse{}, errc::shape_mismatch, "the operand holds square matrices", shape{F, {2, 3}}));
static_assert(fails(inverse{}, errc::unsupported, "dtype of the operand", shape{I, {2, 2}}));
TEST(inverse, eliminates_with_pivots) {
  KILN_EXPECT_RUN(f32({2, 2, 2}, 0, .5, 1, 0, -2, 1.5, 1, -.5), inverse{}, f32({2, 2, 2}, 0, 1, 2, 0, 1, 3, 2, 4));
  KILN_EXPECT_RUN(f32({0, 0}), inverse{}, f32({0, 0}));
}
TEST(inverse, of_a_singular_matrix_is_not_a_number) {
  const literal l = run_bytes_all(inverse{}, f32({2, 2, 2}, 1, 2, 2, 4, 4, 0, 0, 2))[0];
  for (std::size_t k = 0; k < 4; ++k) EXPECT_TRUE(std::isnan(l.at<float>(k))) << k;
  EXPECT_EQ(l.at<float>(4), .25f);
}

// dft

static_assert(shape_from(dft{}, shape{F, {3, 8, 1}}) == shape{F, {3, 8, 2}});
static_assert(shape_from(dft{.axis = 0}, shape{F, {3, 8, 2}}) == shape{F, {3, 8, 2}});
static_assert(shape_from(dft{.one_sided = true, .length = 6}, shape{F, {3, 8, 1}}) == shape{F, {3, 4, 2}});
static_assert(shape_from(dft{.inverse = true, .one_sided = true}, shape{F, {3, 5, 2}}) == shape{F, {3, 8, 1}});
static_assert(fails(dft{.axis = -1}, errc::shape_mismatch, "the last dim holds the parts of a number",
                    shape{F, {8, 2}}));
static_assert(fails(dft{}, errc::shape_mismatch, "the last extent is 1 (real) or 2 (complex)", shape{F, {8, 3}}));
static_assert(fails(dft{.one_sided = true}, errc::shape_mismatch, "a one-sided spectrum is that of a real signal",
                    shape{F, {8, 2}}));
TEST(dft, of_four_numbers) {
  KILN_EXPECT_RUN(f32({4, 2}, 10, 0, -2, 2, -2, 0, -2, -2), (dft{}), f32({4, 1}, 1, 2, 3, 4));
  KILN_EXPECT_RUN(f32({3, 2}, 10, 0, -2, 2, -2, 0), (dft{.one_sided = true}), f32({4, 1}, 1, 2, 3, 4));
  KILN_EXPECT_RUN(f32({4, 1}, 1, 2, 3, 4), (dft{.inverse = true, .one_sided = true}), f32({3, 2}, 10, 0, -2, 2, -2, 0));
  KILN_EXPECT_RUN(f32({2, 2}, 4, 6, -2, -2), (dft{.length = 2}), f32({3, 2}, 1, 2, 3, 4, 9, 9));
  KILN_EXPECT_RUN(f32({1, 2, 2}, 2, 3, -1, -1), (dft{.axis = 1, .inverse = true}), f32({1, 2, 2}, 1, 2, 3, 4));
}
// Against the sum as it is written, with libm's functions.
TEST(dft, of_any_length) {
  for (const std::int64_t n : {1, 2, 3, 17, 50}) {
    small_vector<double> x;
    for (std::int64_t k = 0; k < 2 * n; ++k) x.push_back(std::sin(static_cast<double>(k * k + 1)));
    const literal found = run_bytes(dft{}, literal::of<double>({dtype::f64, {n, 2}}, x));
    for (std::int64_t k = 0; k < n; ++k) {
      std::complex<double> sum;
      for (std::int64_t j = 0; j < n; ++j)
        sum += std::complex<double>(x[static_cast<std::size_t>(2 * j)], x[static_cast<std::size_t>(2 * j + 1)]) *
               std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n));
      EXPECT_NEAR(found.at<double>(static_cast<std::size_t>(2 * k)), sum.real(), 1e-13);
      EXPECT_NEAR(found.at<double>(static_cast<std::size_t>(2 * k + 1)), sum.imag(), 1e-13);
    }
  }
}

// random_uniform

// the numbers that the paper's authors publish for their implementation
constexpr bool gives(philox drawn, std::array<std::uint32_t, 4> words) {
  return std::equal(words.begin(), words.end(), drawn.words);
}
static_assert(gives({0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
constexpr auto all_set = ~std::uint64_t{0};
static_assert(gives({all_set, all_set, all_set}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
static_assert(gives({0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822},
                    {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));

TEST(random_uniform, numbers_are_those_of_their_places) {
  const literal l = run_bytes(random_uniform{{3}, -1, 3, 9, dtype::f64});
  for (std::int64_t k = 0; k < 3; ++k)
    EXPECT_EQ(l.at<double>(static_cast<std::size_t>(k)),
              -1 + 4 * philox(static_cast<std::uint64_t>(k / 2), 9).number(k % 2))
        << k;
  EXPECT_EQ(philox(0, 0).number(0), (0x6627e8d5 / 32 * 0x1p26 + 0xe169c58d / 64) * 0x1p-53);
  const literal other = run_bytes(random_uniform{{2000}, -1, 3, 5, F});
  double sum = 0;
  for (std::int64_t k = 0; k < 2000; ++k) {
    const auto v = other.at<double>(k);
    EXPECT_TRUE(v >= -1 && v < 3) << v;
    sum += v;
  }
  EXPECT_NEAR(sum / 2000, 1, .1);
  EXPECT_FALSE(info_of<random_uniform>().pure);
}
static_assert(fails(random_uniform{{2}, 0, 1, 0, I}, errc::unsupported, "dtype of the result"));

// Ranges in which few numbers of a type lie, or none, and whose ends are not among them.
TEST(random_uniform, stays_below_high) {
  constexpr double most = std::numeric_limits<double>::max();
  const std::pair<double, double> ranges[] = {{0, 1},
                                              {-1, 0},
                                              {-3, -2},
                                              {0x1p24, 0x1p24 + 4},
                                              {1000, 1001},
                                              {.1, .7},
                                              {0x1p53, 0x1p53 + 4},
                                              {0, 1e6},
                                              {-1e6, -1e5},
                                              {0, 0x1p-149},
                                              {-0x1p-24, 0},
                                              {0, 1e300},
                                              {-1e300, 1e300},
                                              {.3, .3 + 0x1p-52},
                                              {-most / 2, most / 2}};
  for (const auto& [low, high] : ranges)
    for (const dtype type : {dtype::f64, F, dtype::f16, dtype::bf16}) {
      const literal l = run_bytes(random_uniform{{20000}, low, high, 5, type});
      const uniform_range range = random_uniform{{1}, low, high, 5, type}.range();
      for (const double v : l.to<double>()) {
        ASSERT_TRUE(v < high && (v >= low || range.least >= high))
            << v << " in [" << low << ", " << high << ") of " << to_string(type);
      }
    }
  const literal one = run_bytes(random_uniform{{3}, .5, .5, 5, dtype::f16});
  for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(one.at<double>(k), .5);
}
constexpr uniform_range of_halves = random_uniform{{1}, .1, 1, 0, dtype::f16}.range();
static_assert(of_halves.least == 0x1.99cp-4 && of_halves.most == 1 - 0x1p-11);
static_assert(random_uniform{{1}, 0, 0x1p20, 0, dtype::f16}.range().most == 65504);
constexpr std::string_view wrong_range = "low is at most high, and what is between them is finite";
TEST(random_uniform, no_number_is_no_bound) {  // clang 16 takes no constant from NaN's arithmetic
  EXPECT_TRUE(
      fails(random_uniform{{2}, 0, std::numeric_limits<double>::quiet_NaN()}, errc::invalid_argument, wrong_range));
}
static_assert(fails(random_uniform{{2}, 1, 0}, errc::invalid_argument, wrong_range));
static_assert(fails(random_uniform{{2}, 0, std::numeric_limits<double>::infinity()}, errc::invalid_argument,
                    wrong_range));

// roi_align

static_assert(shape_from(roi_align{2, 3}, shape{F, {1, 4, 8, 8}}, shape{F, {5, 4}}, shape{I, {5}}) ==
              shape{F, {5, 4, 2, 3}});
static_assert(fails(roi_align{}, errc::shape_mismatch, "there is a batch index for each roi", shape{F, {1, 1, 4, 4}},
                    shape{F, {2, 4}}, shape{I, {3}}));
TEST(roi_align, reads_between_pixels) {
  const literal x = f32({1, 1, 2, 2}, 0, 1, 2, 3), whole = f32({1, 4}, 0, 0, 2, 2), first = i64({1}, 0);
  expect_run(f32({1, 1, 1, 1}, 1.5), (roi_align{1, 1, 1}), x, whole, first);
  expect_run(f32({1, 1, 2, 2}, 0, 1, 2, 3), (roi_align{2, 2, 1}), x, whole, first);
  expect_run(f32({1, 1, 1, 1}, .75), (roi_align{1, 1, 1, 1, true, true}), x, whole, first);
  EXPECT_EQ(raised_by([&] { (void)run(roi_align{}, x, whole, i64({1}, 1)); }), errc::invalid_argument);
}
// The plane has no element to read.
constexpr literal pooled_nothing(const dims& image, const roi_align& how) {
  return run(how, lit(F, image), f32({1, 4}, -1, -1, 1, 1), i64({1}, 0));
}
static_assert(pooled_nothing({1, 1, 0, 3}, {1, 2, 2}).at<float>(1) == 0);
static_assert(pooled_nothing({1, 1, 3, 0}, {1, 2, 2, 1, false, true}).at<float>(1) == 0);
static_assert(pooled_nothing({1, 1, 0, 0}, {1, 2, 0}).at<float>(1) == 0);
static_assert(pooled_nothing({1, 1, 0, 3}, {1, 2, -1, 1, false, true}).at<float>(1) == 0);
static_assert(fails(roi_align{.samples = -1}, errc::invalid_argument, "of whole pixels the greatest is taken",
                    shape{F, {1, 1, 4, 4}}, shape{F, {2, 4}}, shape{I, {2}}));
TEST(roi_align, takes_the_greatest_of_whole_pixels) {
  const roi_align two{2, 2, -1, .5F, false, true};
  const literal x = f32({1, 1, 3, 4}, 0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11), first = i64({1}, 0);
  // halves of 3 x 3 pixels overlap in the middle one
  expect_run(f32({1, 1, 2, 2}, 0, -1, -4, -5), two, x, f32({1, 4}, 0, 0, 4, 4), first);
  expect_run(f32({1, 1, 2, 2}, -1, -2, -5, -6), two, x, f32({1, 4}, 2, 0, 6, 4), first);
  // bins beyond the image have no pixel; a region of less than a pixel is one
  expect_run(f32({1, 1, 2, 2}, -11, 0, 0, 0), two, x, f32({1, 4}, 6, 4, 9, 7), first);
  expect_run(f32({1, 1, 2, 2}, -5, -5, -5, -5), two, x, f32({1, 4}, 2, 2, 1, 1), first);
}

// recurrent

static_assert(fails(recurrent{}, errc::invalid_argument, "number of inputs", shape{F, {1, 1, 1}}));
static_assert(fails(recurrent{.cell = cell_kind::gru}, errc::invalid_argument, "a cell has its number of functions",
                    shape{F, {1, 1, 3}}, shape{F, {1, 3}}, shape{F, {3}}, shape{F, {1, 1}}, shape{I, {1}}));
TEST(recurrent, stops_at_each_length_and_goes_back) {
  // h = x + 2 h, without a bend
  recurrent plain{.functions = {cell_function::affine}, .alpha = {1.0f}, .beta = {0.0f}};
  const literal x = f32({3, 2, 1}, 1, 1, 10, 10, 100, 100), r = f32({1, 1}, 2), b = f32({1}, 0), h = f32({2, 1}, 0, 1);
  expect_run(f32({3, 2, 1}, 1, 3, 12, 16, 124, 0), plain, x, r, b, h, i64({2}, 3, 2));
  plain.reverse = true;
  expect_run(f32({3, 2, 1}, 421, 25, 210, 12, 100, 0), plain, x, r, b, h, i64({2}, 3, 2));
  const auto all = run_all(plain, x, r, b, h, i64({2}, 3, 0));
  EXPECT_TRUE(all[1] == f32({2, 1}, 421, 1));
}

// linear_attention

TEST(linear_attention, adds_or_corrects) {
  const literal q = f32({1, 2, 1, 1}, 1, 1), k = f32({1, 2, 1, 1}, 1, 2), v = f32({1, 2, 1, 1}, 3, 5),
                s = f32({1, 1, 1, 1}, 1), fade = f32({1, 2, 1, 1}, 1, .5), beta = f32({1, 2, 1}, 1, .5);
  // S: 1 + 3 = 4, then 2 + 10
  expect_run(f32({1, 2, 1, 1}, 8, 24), (linear_attention{2, false}), q, k, v, s, fade, beta);
  // S: 1 + (3 - 1) = 3, then 1.5 + 2 * (5 - 3) / 2
  expect_run(f32({1, 2, 1, 1}, 3, 3.5), (linear_attention{1, true}), q, k, v, s, fade, beta);
  EXPECT_TRUE(run_all(linear_attention{1, true}, q, k, v, s, fade, beta)[1] == f32({1, 1, 1, 1}, 3.5));
}

}  // namespace
}  // namespace kiln::test

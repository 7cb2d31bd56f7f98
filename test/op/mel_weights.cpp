#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kiln/op/linear/mel_weights.hpp"
#include "oracle.hpp"

namespace kiln::test {
namespace {

using op::mel_weights;

constexpr auto F = dtype::f32, I = dtype::i64;

static_assert(shape_from(mel_weights{8, 256}, shape{I, {}}, shape{F, {}}, shape{F, {1}}) == shape{F, {129, 8}});
static_assert(fails(mel_weights{}, errc::invalid_argument, "number of inputs", shape{I, {}}, shape{F, {}}));
static_assert(fails(mel_weights{}, errc::shape_mismatch, "the rate and both frequencies are one number each",
                    shape{I, {}}, shape{F, {2}}, shape{F, {}}));
static_assert(fails(mel_weights{}, errc::unsupported, "dtype of the operand", shape{I, {}}, shape{dtype::boolean, {}},
                    shape{F, {}}));

// The specification's loops over each filter's bins.
tensor specified(std::int64_t mels, std::int64_t length, double rate, double lowest, double highest) {
  tensor out(index{length / 2 + 1, mels});
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(highest) - mel(lowest)) / static_cast<double>(mels + 2);
  const auto corner = [&](std::int64_t k) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(k) * step + mel(lowest)) / 2595) - 1);
    return static_cast<std::int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate));
  };
  for (std::int64_t m = 0; m < mels; ++m) {
    const std::int64_t from = corner(m), top = corner(m + 1), to = corner(m + 2);
    if (top == from) out({top, m}) = 1;
    for (std::int64_t k = from; top != from && k <= top; ++k)
      out({k, m}) = static_cast<float>(static_cast<double>(k - from) / static_cast<double>(top - from));
    for (std::int64_t k = top; k < to; ++k)
      out({k, m}) = static_cast<float>(static_cast<double>(to - k) / static_cast<double>(to - top));
  }
  return out;
}

TEST(mel_weights, are_those_of_the_specification) {
  struct {
    std::int64_t mels, length;
    double rate, lowest, highest;
  } const cases[] = {{1, 2, 8000, 0, 4000},       {8, 256, 16000, 31, 7900}, {80, 1024, 16000, 0, 8000},
                     {128, 401, 22050, 20, 9999}, {40, 64, 8000, 100, 3999}, {7, 33, 8000, 250, 250},
                     {300, 512, 44100, 5, 22000}, {3, 4096, 48000, 99, 1000}};
  for (const auto& c : cases) {
    SCOPED_TRACE(::testing::Message() << c.mels << " filters, " << c.length);
    const mel_weights op{c.mels, c.length};
    const literal expected = specified(c.mels, c.length, c.rate, c.lowest, c.highest).as(F);
    const literal rate = lit(I, {}, static_cast<std::int64_t>(c.rate));
    EXPECT_TRUE(run(op, rate, f32({}, c.lowest), f32({}, c.highest)) == expected);
    EXPECT_TRUE(run_bytes(op, converted(rate, F), lit(I, {1}, static_cast<std::int64_t>(c.lowest)),
                          f32({}, c.highest)) == expected);
    const mel_filters filters(c.rate, c.lowest, c.highest, c.length, c.mels);
    const auto values = expected.to<float>();
    for (std::int64_t bin = 0, i = 0; bin < filters.bins(); ++bin)
      for (std::int64_t m = 0; m < c.mels; ++m, ++i)
        ASSERT_EQ(filters.weight(bin, m), values[static_cast<std::size_t>(i)]) << bin << ' ' << m;
  }
}

// Ratios of more bins than f32 counts are rounded once; a length of all bits has a next one.
TEST(mel_weights, of_many_bins) {
  constexpr std::int64_t length = std::int64_t{1} << 29;
  const mel_filters filters(8000, 0, 4000, length, 1);
  const std::int64_t top = filters.corner(1), to = filters.corner(2), from = filters.corner(0);
  ASSERT_GT(top - from, std::int64_t{1} << 24);
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return static_cast<float>(static_cast<double>(part) / static_cast<double>(whole));
  };
  for (std::int64_t k = 1; k < 2000; k += 2) {
    ASSERT_EQ(filters.weight(from + (top - from) / 2 + k, 0), share((top - from) / 2 + k, top - from)) << k;
    float row = -1;
    filters.write(top + (to - top) / 2 + k, top + (to - top) / 2 + k + 1, &row);
    ASSERT_EQ(row, share(to - top - (to - top) / 2 - k, to - top)) << k;
  }
  const mel_filters longest(8000, 100, 3000, std::numeric_limits<std::int64_t>::max(), 0);
  EXPECT_TRUE(longest.fit());
  longest.write(0, longest.bins(), nullptr);  // of no filters
}

// Rows are written whole, wherever a part of them begins.
TEST(mel_weights, are_written_in_any_parts) {
  const mel_filters filters(16000, 31, 7900, 256, 8);
  const std::int64_t bins = filters.bins();
  for (const std::int64_t each : {1, 5, 16, 17, 40, 129}) {
    std::vector<float> found(static_cast<std::size_t>(bins * 8), -1.0f);
    for (std::int64_t first = 0; first < bins; first += each)
      filters.write(first, std::min(bins, first + each), found.data() + first * 8);
    for (std::int64_t bin = 0; bin < bins; ++bin)
      for (std::int64_t m = 0; m < 8; ++m)
        ASSERT_EQ(found[static_cast<std::size_t>(bin * 8 + m)], filters.weight(bin, m)) << each << ' ' << bin;
  }
}

TEST(mel_weights, of_operands_of_one_number) {
  for (const std::int64_t n : {0, 3}) {
    const std::vector<float> values(static_cast<std::size_t>(n), 3000.0f);
    const literal edges = literal::of<float>({F, {n}}, values);
    EXPECT_EQ(raised_by([&] {
                (void)run(mel_weights{4, 64}, lit(I, {}, 8000), f32({}, 100), edges);
              }),
              errc::shape_mismatch);
  }
}

TEST(mel_weights, lie_within_the_spectrum) {
  const mel_weights op{4, 64};
  for (const auto& [lowest, highest] : {std::pair(100.0, 9000.0), {-5.0, 3000.0}, {3000.0, 100.0}, {0.0, NAN}})
    EXPECT_EQ(
        raised_by([&, low = lowest, high = highest] { (void)run(op, lit(I, {}, 8000), f32({}, low), f32({}, high)); }),
        errc::invalid_argument);
}

}  // namespace
}  // namespace kiln::test

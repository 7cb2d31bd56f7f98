// Floats as sums of three bf16, in the order of a matrix unit's tiles.
#include "kiln/kernel/amx/split_floats.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernel/isa/random_values.hpp"

namespace {

using namespace kiln::kernels;
using kiln::testing::values_of_all_sizes;

float part(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

enum class side { rows, columns };

// Element k of row or column `line` of a block whose depth has so many tiles; the parts' sum is exact.
float joined(side of, const std::vector<std::uint16_t>& split, std::int64_t line, std::int64_t k, std::int64_t tiles) {
  const std::int64_t tile = (line / 16 * tiles + k / 32) * split_tile_size;
  const std::int64_t row = of == side::rows ? line % 16 : k % 16, pair = of == side::rows ? k % 16 : line % 16;
  float sum = 0;
  for (std::int64_t p = float_parts - 1; p >= 0; --p)
    sum += part(split[static_cast<std::size_t>(tile + p * 512 + row * 32 + pair * 2 + k % 32 / 16)]);
  return sum;
}

// `lines` rows or columns of a block whose memory has gaps.
void check(side of, std::int64_t lines, std::int64_t depth) {
  SCOPED_TRACE(testing::Message() << lines << (of == side::rows ? " rows of " : " columns of ") << depth);
  const bool rows = of == side::rows;
  const std::int64_t step = (rows ? depth : lines) + 3, tiles = depth_tiles(depth), all = (lines + 15) / 16 * 16;
  const auto x = values_of_all_sizes((rows ? lines : depth) * step, 3);
  std::vector<std::uint16_t> to(static_cast<std::size_t>(all / 16 * tiles * split_tile_size), 0x4040);
  tile_splitter s = rows ? tile_splitter::of_rows(x.data(), step, lines, depth, to.data())
                         : tile_splitter::of_columns(x.data(), step, depth, lines, to.data());
  ASSERT_EQ(s.quarters_left() > 0, lines >= 16 && depth >= 32);  // the others are no whole tiles
  s.finish();
  for (std::int64_t line = 0; line < all; ++line)
    for (std::int64_t k = 0; k < tiles * 32; ++k) {
      const bool inside = line < lines && k < depth;
      ASSERT_EQ(joined(of, to, line, k, tiles),
                inside ? x[static_cast<std::size_t>(rows ? line * step + k : k * step + line)] : 0.F)
          << line << ' ' << k;
    }
}

class split_floats_test : public testing::Test {
 protected:
  void SetUp() override {
    if (kiln::native_bytes != 64) GTEST_SKIP() << "this level's vectors don't feed a matrix unit";
  }
};

TEST_F(split_floats_test, parts_sum_to_the_float) {
  for (std::int64_t rows : {1, 4, 15, 16, 17, 32, 37})
    for (std::int64_t depth : {1, 15, 16, 17, 31, 32, 33, 64, 75}) check(side::rows, rows, depth);
}

TEST_F(split_floats_test, columns_are_split_alike) {
  for (std::int64_t cols : {1, 15, 16, 17, 32, 50, 64})
    for (std::int64_t depth : {1, 4, 16, 17, 20, 31, 32, 33, 64, 75}) check(side::columns, cols, depth);
}

TEST_F(split_floats_test, numbers_of_one_part_are_seen) {
  std::vector<std::uint16_t> to(6 * split_tile_size);
  std::vector<float> values(33 * 41, 1.5F);
  const auto one_part = [&](bool rows) {
    tile_splitter s = rows ? tile_splitter::of_rows(values.data(), 41, 33, 39, to.data())
                           : tile_splitter::of_columns(values.data(), 41, 33, 39, to.data());
    s.finish();
    return s.one_part();
  };
  for (const bool rows : {true, false}) {
    EXPECT_TRUE(one_part(rows));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float kept =
          std::exchange(values[i], std::bit_cast<float>(std::bit_cast<std::uint32_t>(1.5F) + (1U << i % 16)));
      ASSERT_EQ(one_part(rows), i % 41 >= 39)
          << (rows ? "rows " : "columns ") << i;  // what lies beside counts for nothing
      values[i] = kept;
    }
  }
}

TEST_F(split_floats_test, what_has_no_parts_has_one_that_is_nan) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float all_ones = std::bit_cast<float>(0x7fffffffU);  // a NaN that rounding turns into zero
  for (const float x : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), all_ones, -all_ones,
                        std::numeric_limits<float>::max()})
    for (std::int64_t at : {0, 15, 16, 31, 32, 40, 17 * 41, 32 * 41 + 40}) {
      std::vector<float> values(33 * 41, 1.F);
      values[static_cast<std::size_t>(at)] = x;
      std::vector<std::uint16_t> to(6 * split_tile_size);
      tile_splitter::of_rows(values.data(), 41, 33, 41, to.data()).finish();
      EXPECT_TRUE(std::isnan(joined(side::rows, to, at / 41, at % 41, 2))) << x << " at " << at;
      tile_splitter::of_columns(values.data(), 41, 33, 41, to.data()).finish();
      EXPECT_TRUE(std::isnan(joined(side::columns, to, at % 41, at / 41, 2))) << x << " at " << at;
    }
}

}  // namespace

// Floats as sums of three bf16, in the order of a matrix unit's tiles.
#include "kiln/kernel/split_floats.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "eigen/isa/random_values.hpp"

namespace {

using namespace kiln::kernels;
using kiln::testing::values_of_all_sizes;

float part(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// Element (row, k) of split rows, or (col, k) of split columns, whose depth has so many tiles; the parts' sum is exact.
float joined_row(const std::vector<std::uint16_t>& split, std::int64_t row, std::int64_t k, std::int64_t tiles) {
  const std::int64_t tile = (row / 16 * tiles + k / 32) * split_tile_size;
  float sum = 0;
  for (std::int64_t p = float_parts - 1; p >= 0; --p)
    sum += part(split[static_cast<std::size_t>(tile + p * 512 + row % 16 * 32 + k % 16 * 2 + k % 32 / 16)]);
  return sum;
}
float joined_column(const std::vector<std::uint16_t>& split, std::int64_t col, std::int64_t k, std::int64_t tiles) {
  const std::int64_t tile = (col / 16 * tiles + k / 32) * split_tile_size;
  float sum = 0;
  for (std::int64_t p = float_parts - 1; p >= 0; --p)
    sum += part(split[static_cast<std::size_t>(tile + p * 512 + k % 16 * 32 + col % 16 * 2 + k % 32 / 16)]);
  return sum;
}

class split_floats_test : public testing::Test {
 protected:
  void SetUp() override {
    if (kiln::native_bytes != 64) GTEST_SKIP() << "this level's vectors don't feed a matrix unit";
  }
};
TEST_F(split_floats_test, parts_sum_to_the_float) {
  for (std::int64_t rows : {1, 4, 15, 16, 17, 32, 37})
    for (std::int64_t depth : {1, 15, 16, 17, 31, 32, 33, 64, 75}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << depth);
      const std::int64_t step = depth + 3, tiles = depth_tiles(depth), all = (rows + 15) / 16 * 16;
      const auto x = values_of_all_sizes(rows * step, 3);
      std::vector<std::uint16_t> to(static_cast<std::size_t>(all / 16 * tiles * split_tile_size), 0x4040);
      tile_splitter s = tile_splitter::of_rows(x.data(), step, rows, depth, to.data());
      ASSERT_EQ(s.quarters_left() > 0, rows >= 16 && depth >= 32);  // the others are no whole tiles
      s.finish();
      for (std::int64_t r = 0; r < all; ++r)
        for (std::int64_t k = 0; k < tiles * 32; ++k)
          ASSERT_EQ(joined_row(to, r, k, tiles),
                    r < rows && k < depth ? x[static_cast<std::size_t>(r * step + k)] : 0.F)
              << r << ' ' << k;
    }
}

TEST_F(split_floats_test, columns_are_split_alike) {
  for (std::int64_t cols : {1, 15, 16, 17, 32, 50, 64})
    for (std::int64_t depth : {1, 4, 16, 17, 20, 31, 32, 33, 64, 75}) {
      SCOPED_TRACE(testing::Message() << cols << " columns of " << depth);
      const std::int64_t step = cols + 5, tiles = depth_tiles(depth), all = (cols + 15) / 16 * 16;
      const auto x = values_of_all_sizes(depth * step, 4);
      std::vector<std::uint16_t> to(static_cast<std::size_t>(all / 16 * tiles * split_tile_size), 0x4040);
      tile_splitter s = tile_splitter::of_columns(x.data(), step, depth, cols, to.data());
      s.finish();
      for (std::int64_t c = 0; c < all; ++c)
        for (std::int64_t k = 0; k < tiles * 32; ++k)
          ASSERT_EQ(joined_column(to, c, k, tiles),
                    c < cols && k < depth ? x[static_cast<std::size_t>(k * step + c)] : 0.F)
              << c << ' ' << k;
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
      EXPECT_TRUE(std::isnan(joined_row(to, at / 41, at % 41, 2))) << x << " at " << at;
      tile_splitter::of_columns(values.data(), 41, 33, 41, to.data()).finish();
      EXPECT_TRUE(std::isnan(joined_column(to, at % 41, at / 41, 2))) << x << " at " << at;
    }
}

}  // namespace

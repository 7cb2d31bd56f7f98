// Products of split floats on the matrix unit, where the machine has one.
#include "kiln/kernel/gemm_prologue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "eigen/isa/random_values.hpp"
#include "kiln/kernel/affine_tail.hpp"

namespace {

using namespace kiln::kernels;
using kiln::testing::random_values;

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

class matrix_unit_test : public testing::Test {
 protected:
  void SetUp() override {
    if (kiln::native_bytes != 64) GTEST_SKIP() << "this level's vectors don't feed a matrix unit";
  }
};
// Those that run products.
class matrix_products_test : public matrix_unit_test {
 protected:
  void SetUp() override {
    if (!matrix_unit::available()) GTEST_SKIP() << "no matrix unit";
  }
};

// Values of all sizes whose least part is still a normal number, and some whose bits carry when they are rounded.
std::vector<float> wide_values(std::int64_t count, unsigned seed) {
  std::vector<float> x = random_values<float>(count, seed);
  const std::vector<float> more = random_values<float>(count, seed + 1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::ldexp(x[i], static_cast<int>(80 * more[i]));
  for (std::size_t i = 0; i + 4 < x.size(); i += 11)
    x[i] = 0x1.fffffep3F, x[i + 1] = -0x1.fe8p-20F, x[i + 2] = 0, x[i + 3] = 0x1.017ffep10F;
  return x;
}

TEST_F(matrix_unit_test, parts_sum_to_the_float) {
  for (std::int64_t rows : {1, 4, 15, 16, 17, 32, 37})
    for (std::int64_t depth : {1, 15, 16, 17, 31, 32, 33, 64, 75}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << depth);
      const std::int64_t step = depth + 3, tiles = depth_tiles(depth), all = (rows + 15) / 16 * 16;
      const auto x = wide_values(rows * step, 3);
      std::vector<std::uint16_t> to(static_cast<std::size_t>(all / 16 * tiles * split_tile_size), 0x4040);
      tile_splitter s = tile_splitter::of_rows(x.data(), step, rows, depth, to.data());
      ASSERT_EQ(s.quarters_left() > 0, rows >= 16 && depth >= 32);  // the others are no whole tiles
      s.finish();
      ASSERT_TRUE(s.all_finite());
      for (std::int64_t r = 0; r < all; ++r)
        for (std::int64_t k = 0; k < tiles * 32; ++k)
          ASSERT_EQ(joined_row(to, r, k, tiles),
                    r < rows && k < depth ? x[static_cast<std::size_t>(r * step + k)] : 0.F)
              << r << ' ' << k;
    }
}

TEST_F(matrix_unit_test, columns_are_split_alike) {
  for (std::int64_t cols : {1, 15, 16, 17, 32, 50, 64})
    for (std::int64_t depth : {1, 4, 16, 17, 20, 31, 32, 33, 64, 75}) {
      SCOPED_TRACE(testing::Message() << cols << " columns of " << depth);
      const std::int64_t step = cols + 5, tiles = depth_tiles(depth), all = (cols + 15) / 16 * 16;
      const auto x = wide_values(depth * step, 4);
      std::vector<std::uint16_t> to(static_cast<std::size_t>(all / 16 * tiles * split_tile_size), 0x4040);
      tile_splitter s = tile_splitter::of_columns(x.data(), step, depth, cols, to.data());
      s.finish();
      ASSERT_TRUE(s.all_finite());
      for (std::int64_t c = 0; c < all; ++c)
        for (std::int64_t k = 0; k < tiles * 32; ++k)
          ASSERT_EQ(joined_column(to, c, k, tiles),
                    c < cols && k < depth ? x[static_cast<std::size_t>(k * step + c)] : 0.F)
              << c << ' ' << k;
    }
}

TEST_F(matrix_unit_test, what_has_no_parts_is_noticed) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float all_ones = std::bit_cast<float>(0x7fffffffU);  // a NaN that rounding turns into zero
  for (const float x : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), all_ones, -all_ones,
                        std::numeric_limits<float>::max()})
    for (std::int64_t at : {0, 15, 16, 31, 32, 40, 17 * 41, 32 * 41 - 1}) {
      std::vector<float> values(33 * 41, 1.F);
      values[static_cast<std::size_t>(at)] = x;
      std::vector<std::uint16_t> to(6 * split_tile_size);
      tile_splitter rows = tile_splitter::of_rows(values.data(), 41, 33, 41, to.data());
      rows.finish();
      EXPECT_FALSE(rows.all_finite()) << x << " at " << at;
      tile_splitter columns = tile_splitter::of_columns(values.data(), 41, 33, 41, to.data());
      columns.finish();
      EXPECT_FALSE(columns.all_finite()) << x << " at " << at;
    }
}

struct product {
  std::int64_t m, n, k, batch = 1;
  std::vector<float> a, b, c;
  gemm_problem<float> p;

  product(std::int64_t rows, std::int64_t cols, std::int64_t depth, std::int64_t matrices = 1)
      : m(rows), n(cols), k(depth), batch(matrices) {
    a = random_values<float>(batch * m * a_row(), 1);
    b = random_values<float>(batch * k * b_row(), 2);
    c.assign(static_cast<std::size_t>(batch * m * c_row() + 16), -77.F);
  }
  std::int64_t a_row() const { return k + 2; }
  std::int64_t b_row() const { return n + 1; }
  std::int64_t c_row() const { return n + 3; }

  template <class Epilogue = no_epilogue>
  void run(kiln::thread_pool& pool, bool packed, std::int64_t most_rows = 1 << 20, Epilogue&& epilogue = {}) {
    p = {.m = m, .n = n, .k = k, .a = a.data(), .a_row = a_row()};
    p.c = c.data(), p.c_row = c_row(), p.batch = batch, p.a_batch = m * a_row(), p.c_batch = m * c_row();
    std::vector<float> scratch(
        static_cast<std::size_t>(gemm_unpacked_scratch_size<float>(1024, 1024, k + 32, pool.size())),
        std::numeric_limits<float>::quiet_NaN());
    float* const own = scratch.data() + packed_panels_size<float>(k, pool.size());
    if (packed) {
      const std::int64_t each = packed_b_size<float>(k, n);
      std::vector<float> panels(static_cast<std::size_t>(each * batch));
      for (std::int64_t i = 0; i < batch; ++i)
        pack_b(pool, panels.data() + i * each, b.data() + i * k * b_row(), b_row(), 1, k, n);
      p.b = panels.data(), p.b_batch = each;
      multiply_on_matrix_unit(pool, p, plain_left<float>{&p}, packed_right<float>{p.b, p.b_batch, k}, own, most_rows,
                              epilogue);
    } else {
      p.b = b.data(), p.b_row = b_row(), p.b_batch = k * b_row();
      const unpacked_right<float> right{&p, scratch.data(), depth_block<float>(k) * register_tile<float>::width, false,
                                        true};
      multiply_on_matrix_unit(pool, p, plain_left<float>{&p}, right, own, most_rows, epilogue);
    }
  }
  float at(std::int64_t matrix, std::int64_t row, std::int64_t col) const {
    return c[static_cast<std::size_t>((matrix * m + row) * c_row() + col)];
  }
  // The exact sum, and that of the absolute products, which errors are relative to.
  std::pair<double, double> sum(std::int64_t matrix, std::int64_t row, std::int64_t col) const {
    double all = 0, absolute = 0;
    for (std::int64_t x = 0; x < k; ++x) {
      const double y = static_cast<double>(a[static_cast<std::size_t>((matrix * m + row) * a_row() + x)]) *
                       static_cast<double>(b[static_cast<std::size_t>((matrix * k + x) * b_row() + col)]);
      all += y, absolute += std::abs(y);
    }
    return {all, absolute};
  }
  // Errors are those of a sum in fp32, relative to the absolute products.
  void check(double tolerance = 0x1p-22) const {
    for (std::int64_t i = 0; i < batch; ++i)
      for (std::int64_t r = 0; r < m; ++r)
        for (std::int64_t j = 0; j < c_row(); ++j) {
          if (j >= n) {
            ASSERT_EQ(at(i, r, j), -77.F) << "written beyond row " << r;
            continue;
          }
          const auto [expected, absolute] = sum(i, r, j);
          ASSERT_NEAR(at(i, r, j), expected, tolerance * absolute) << i << ' ' << r << ' ' << j;
        }
    for (std::size_t i = c.size() - 16; i < c.size(); ++i) ASSERT_EQ(c[i], -77.F) << "written behind the last row";
  }
};

TEST_F(matrix_products_test, every_tail) {
  kiln::thread_pool pool(3);
  for (const bool packed : {true, false})
    for (std::int64_t m : {1, 15, 16, 17, 32, 33, 48, 70})
      for (std::int64_t n : {1, 16, 17, 32, 33, 48, 64, 65, 130})
        for (std::int64_t k : {1, 31, 32, 33, 160, 161, 330}) {
          SCOPED_TRACE(testing::Message() << m << 'x' << n << 'x' << k << (packed ? " packed" : ""));
          product x(m, n, k);
          x.run(pool, packed);
          x.check();
        }
}

TEST_F(matrix_products_test, chunks_groups_and_batches) {
  kiln::thread_pool one(1), pool(3);
  for (const bool packed : {true, false})
    for (kiln::thread_pool* of : {&one, &pool}) {
      product rows(600, 70, 200), cols(40, 1200, 170), batch(70, 100, 40, 5), few(200, 600, 70);
      rows.run(*of, packed), rows.check();
      cols.run(*of, packed), cols.check();
      batch.run(*of, packed), batch.check();
      few.run(*of, packed, 48), few.check();
    }
}

// Sums don't depend on how rows and columns are shared.
TEST_F(matrix_products_test, workers_change_no_bit) {
  kiln::thread_pool one(1), three(3);
  product x(200, 300, 400), y = x;
  x.run(one, true), y.run(three, true, 64);
  EXPECT_EQ(std::memcmp(x.c.data(), y.c.data(), x.c.size() * sizeof(float)), 0);
}

TEST_F(matrix_products_test, integers_are_exact) {
  kiln::thread_pool pool(2);
  product x(64, 96, 100);
  for (float& v : x.a) v = std::round(300 * v);
  for (float& v : x.b) v = std::round(300 * v);  // sums stay below 2^24
  x.run(pool, true);
  for (std::int64_t r = 0; r < x.m; ++r)
    for (std::int64_t j = 0; j < x.n; ++j) ASSERT_EQ(x.at(0, r, j), x.sum(0, r, j).first) << r << ' ' << j;
}

TEST_F(matrix_products_test, values_of_all_sizes) {
  kiln::thread_pool pool(2);
  product x(64, 96, 200);
  const auto a = wide_values(x.m * x.a_row(), 5), b = wide_values(x.k * x.b_row(), 7);
  for (std::size_t i = 0; i < x.a.size(); ++i) x.a[i] = std::ldexp(a[i], -30);
  for (std::size_t i = 0; i < x.b.size(); ++i) x.b[i] = std::ldexp(b[i], -10);
  x.run(pool, false);
  x.check(0x1p-21);  // where one product is nearly all, its six parts are rounded one after the other
}

// Sums that meet an infinity or a NaN are what they are elsewhere; the others are right.
TEST_F(matrix_products_test, values_that_are_not_finite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  kiln::thread_pool pool(2);
  for (const bool packed : {true, false})
    for (const float value : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()})
      for (const bool in_left : {true, false}) {
        product x(100, 200, 300);
        const std::int64_t row = 50, col = 150, k = 170;
        (in_left ? x.a[static_cast<std::size_t>(row * x.a_row() + k)]
                 : x.b[static_cast<std::size_t>(k * x.b_row() + col)]) = value;
        x.run(pool, packed);
        for (std::int64_t r = 0; r < x.m; ++r)
          for (std::int64_t j = 0; j < x.n; ++j) {
            const auto [expected, absolute] = x.sum(0, r, j);
            if (in_left ? r == row : j == col) {
              if (value != value)
                ASSERT_TRUE(std::isnan(x.at(0, r, j))) << r << ' ' << j;
              else
                ASSERT_EQ(x.at(0, r, j), expected) << r << ' ' << j;
            } else {
              ASSERT_NEAR(x.at(0, r, j), expected, 0x1p-22 * absolute) << r << ' ' << j;
            }
          }
      }
}

TEST_F(matrix_products_test, epilogues_meet_each_sum_once) {
  kiln::thread_pool pool(2);
  for (const std::int64_t k : {40, 400}) {
    product x(150, 170, k);
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(x.m * x.n));
    x.run(pool, true, 1 << 20,
          [&](std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* at,
              std::ptrdiff_t step) {
            for (std::int64_t r = 0; r < rows; ++r)
              for (std::int64_t j = 0; j < cols; ++j) {
                ++visits[static_cast<std::size_t>((row0 + r) * x.n + col0 + j)];
                at[r * step + j] = -at[r * step + j];
              }
          });
    for (const std::atomic<int>& v : visits) ASSERT_EQ(v.load(), 1);
    for (float& v : x.a) v = -v;
    x.check();
  }
}

// What ends in registers elsewhere: biases, an addend, bounds.
TEST_F(matrix_products_test, affine_tails) {
  kiln::thread_pool pool(2);
  for (const bool of_rows : {true, false}) {
    product x(100, 90, 170);
    const auto col = random_values<float>(x.n, 5), row = random_values<float>(x.m, 6),
               addend = random_values<float>(x.m * x.n, 7);
    affine_tail<float> tail{.offset = .25F, .addend = addend.data(), .addend_row = x.n, .clamps = true, .low = -1};
    tail.col_bias[0] = col.data();
    if (of_rows) tail.row_bias = row.data(), tail.row_period = x.m, tail.high = 2;
    x.run(pool, true, 1 << 20, tail);
    for (std::int64_t r = 0; r < x.m; ++r)
      for (std::int64_t j = 0; j < x.n; ++j) {
        const auto [sum, absolute] = x.sum(0, r, j);
        double y = sum + .25 + col[static_cast<std::size_t>(j)] + addend[static_cast<std::size_t>(r * x.n + j)];
        if (of_rows) y += row[static_cast<std::size_t>(r)];
        ASSERT_NEAR(x.at(0, r, j), std::min(std::max(y, -1.), of_rows ? 2. : 1e9), 0x1p-22 * (absolute + 4));
      }
  }
}

TEST_F(matrix_products_test, prologues) {
  kiln::thread_pool pool(2);
  product x(200, 128, 320);
  const auto scale = random_values<float>(x.k, 5), shift = random_values<float>(x.k, 6);
  channel_prologue<float> prologue;
  prologue.scale = scale.data(), prologue.shift = shift.data();
  prologue.clamps = true, prologue.low = 0;
  std::vector<float> panels(static_cast<std::size_t>(packed_b_size<float>(x.k, x.n)));
  pack_b(pool, panels.data(), x.b.data(), x.b_row(), 1, x.k, x.n);
  x.p = {.m = x.m, .n = x.n, .k = x.k, .a = x.a.data(), .a_row = x.a_row()};
  x.p.b = panels.data(), x.p.c = x.c.data(), x.p.c_row = x.c_row();
  ASSERT_TRUE(gains_from_matrix_unit(x.p));
  std::vector<float> scratch(static_cast<std::size_t>(gemm_changed_scratch_size(x.p) * pool.size()));
  gemm_changed(pool, x.p, prologue, scratch.data());
  for (std::int64_t i = 0; i < x.m; ++i)
    for (std::int64_t c = 0; c < x.k; ++c) {
      float& v = x.a[static_cast<std::size_t>(i * x.a_row() + c)];
      v = std::max(0.F, v * scale[static_cast<std::size_t>(c)] + shift[static_cast<std::size_t>(c)]);
    }
  x.check();
}

TEST_F(matrix_products_test, small_or_strided_products_stay_in_vectors) {
  gemm_problem<float> p{.m = 256, .n = 256, .k = 256};
  EXPECT_TRUE(gains_from_matrix_unit(p));
  EXPECT_GT(gemm_scratch_size<float>(p.m, p.n, p.k, 2), 0);
  p.a_col = 2;
  EXPECT_FALSE(gains_from_matrix_unit(p));
  p.a_col = 1, p.matrix_unit = false;
  EXPECT_FALSE(gains_from_matrix_unit(p));
  for (const auto& [m, n, k] : {std::array{1, 4096, 4096}, {31, 512, 512}, {512, 31, 512}, {512, 512, 31}}) {
    EXPECT_FALSE(gains_from_matrix_unit(gemm_problem<float>{.m = m, .n = n, .k = k}));
    EXPECT_EQ(gemm_scratch_size<float>(m, n, k, 2), 0);
  }
}

}  // namespace

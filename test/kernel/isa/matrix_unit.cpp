// Products of split floats on the matrix unit, where the machine has one.
#include "kiln/kernel/gemm/prologue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernel/isa/random_values.hpp"
#include "kiln/core/half.hpp"
#include "kiln/kernel/gemm/affine_epilogue.hpp"

namespace {

using namespace kiln::kernels;
using kiln::testing::random_values;
using kiln::testing::values_of_all_sizes;

void narrow(std::vector<float>& values) {
  for (float& v : values) v = static_cast<float>(kiln::bfloat16(v));
}

class matrix_unit_test : public testing::Test {
 protected:
  void SetUp() override {
    if (!matrix_unit::available()) GTEST_SKIP() << "no matrix unit";
  }
};

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
    for (std::size_t i = c.size() - 16; i < c.size(); ++i) ASSERT_EQ(c[i], -77.F) << "written after the last row";
  }
};

TEST_F(matrix_unit_test, every_partial_vector) {
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

TEST_F(matrix_unit_test, chunks_groups_and_batches) {
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
TEST_F(matrix_unit_test, workers_change_no_bit) {
  kiln::thread_pool one(1), three(3);
  product x(200, 300, 400), y = x;
  x.run(one, true), y.run(three, true, 64);
  EXPECT_EQ(std::memcmp(x.c.data(), y.c.data(), x.c.size() * sizeof(float)), 0);
  // a tile that shares its pair with a ragged one, or does not
  product ragged(145, 300, 512), same = ragged;
  kiln::thread_pool two(2);
  ragged.run(one, true), same.run(two, true, 80);
  EXPECT_EQ(std::memcmp(ragged.c.data(), same.c.data(), same.c.size() * sizeof(float)), 0);
}

// Numbers that are bf16 have one part: products with the others are left out where a block has no other numbers, and
// change no bit of the sums beside one that has.
TEST_F(matrix_unit_test, operands_of_one_part) {
  kiln::thread_pool pool(2);
  for (const auto [m, n, k] : {std::array{70, 130, 330}, std::array{48, 33, 32}, std::array{1, 64, 161}}) {
    product x(m, n, k);
    for (const bool left : {true, false})
      for (const bool right : {true, false}) {
        SCOPED_TRACE(testing::Message() << m << 'x' << n << 'x' << k << " one part: left " << left << " right "
                                        << right);
        product y = x;
        if (left) narrow(y.a);
        if (right) narrow(y.b);
        y.run(pool, true);
        y.check();
        // another row and column, of three parts
        product z = y;
        const std::int64_t row = m / 2, col = n / 2;
        for (std::int64_t i = 0; i < k; ++i) {
          z.a[static_cast<std::size_t>(row * z.a_row() + i)] = .1F;
          z.b[static_cast<std::size_t>(i * z.b_row() + col)] = .3F;
        }
        z.run(pool, true);
        z.check();
        for (std::int64_t r = 0; r < m; ++r)
          for (std::int64_t j = 0; j < n; ++j)
            if (r != row && j != col) {
              ASSERT_EQ(z.at(0, r, j), y.at(0, r, j)) << r << ' ' << j;
            }
      }
  }
}

TEST_F(matrix_unit_test, integers_are_exact) {
  kiln::thread_pool pool(2);
  product x(64, 96, 100);
  for (float& v : x.a) v = std::round(300 * v);
  for (float& v : x.b) v = std::round(300 * v);  // sums stay below 2^24
  x.run(pool, true);
  for (std::int64_t r = 0; r < x.m; ++r)
    for (std::int64_t j = 0; j < x.n; ++j) ASSERT_EQ(x.at(0, r, j), x.sum(0, r, j).first) << r << ' ' << j;
}

TEST_F(matrix_unit_test, values_of_all_sizes) {
  kiln::thread_pool pool(2);
  product x(64, 96, 200);
  const auto a = values_of_all_sizes(x.m * x.a_row(), 5), b = values_of_all_sizes(x.k * x.b_row(), 7);
  for (std::size_t i = 0; i < x.a.size(); ++i) x.a[i] = std::ldexp(a[i], -30);
  for (std::size_t i = 0; i < x.b.size(); ++i) x.b[i] = std::ldexp(b[i], -10);
  x.run(pool, false);
  x.check(0x1p-21);  // where one product is nearly all, its six parts are rounded one after the other
}

// Sums that meet an infinity or a NaN are what they are elsewhere; the others are right.
TEST_F(matrix_unit_test, values_that_are_not_finite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  kiln::thread_pool pool(2);
  for (const bool packed : {true, false})
    for (const float value : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()})
      for (const bool in_left : {true, false}) {
        product x(100, 200, 300);
        if (packed) narrow(x.a), narrow(x.b);  // of one part
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

// Finite values whose sums exceed all floats: parts do so both ways.
TEST_F(matrix_unit_test, sums_that_exceed_all_floats) {
  kiln::thread_pool pool(2);
  for (const std::int64_t k : {40, 400}) {
    product x(70, 80, k);
    for (std::size_t i = 0; i < x.a.size(); ++i)
      x.a[i] = 1e25F * (2 + x.a[i]) * (i / static_cast<std::size_t>(x.a_row()) == 20);
    for (float& v : x.b) v = 1e25F * (2 + v);
    x.run(pool, true);
    for (std::int64_t r = 0; r < x.m; ++r)
      for (std::int64_t j = 0; j < x.n; ++j)
        ASSERT_EQ(x.at(0, r, j), r == 20 ? std::numeric_limits<float>::infinity() : 0.F) << r << ' ' << j;
  }
}

// As callers have it: what gains is right, of right operands that lie any way.
TEST_F(matrix_unit_test, products_of_operands_that_are_not_packed) {
  kiln::thread_pool pool(2);
  for (const std::int64_t batch : {1, 2})
    for (const bool transposed : {false, true}) {
      product x(192, 250, 256, batch);
      x.p = {.m = x.m, .n = x.n, .k = x.k, .a = x.a.data(), .a_row = x.a_row()};
      std::vector<float> turned(static_cast<std::size_t>(batch * x.n * x.k));
      x.p.b = x.b.data(), x.p.b_row = x.b_row(), x.p.b_batch = x.k * x.b_row();
      if (transposed) {
        for (std::int64_t i = 0; i < batch * x.k; ++i)
          for (std::int64_t j = 0; j < x.n; ++j)
            turned[static_cast<std::size_t>((i / x.k * x.n + j) * x.k + i % x.k)] =
                x.b[static_cast<std::size_t>(i * x.b_row() + j)];
        x.p.b = turned.data(), x.p.b_row = 1, x.p.b_col = x.k, x.p.b_batch = x.n * x.k;
      }
      x.p.c = x.c.data(), x.p.c_row = x.c_row(), x.p.batch = batch;
      x.p.a_batch = x.m * x.a_row(), x.p.c_batch = x.m * x.c_row();
      ASSERT_TRUE(gains_from_matrix_unit(x.p));
      const auto size = static_cast<std::size_t>(gemm_unpacked_scratch_size<float>(batch * x.m, x.n, x.k, pool.size()));
      std::vector<float> scratch(size + 16, 5.F);
      gemm_unpacked(pool, x.p, scratch.data());
      x.check();
      for (std::size_t i = size; i < scratch.size(); ++i) ASSERT_EQ(scratch[i], 5.F) << "written after the scratch";
    }
}

TEST_F(matrix_unit_test, epilogues_meet_each_sum_once) {
  kiln::thread_pool pool(2);
  for (const std::int64_t k : {40, 400}) {
    product x(150, 170, k);
    const bool overflows = k == 400;  // what is made again in vectors
    if (overflows) x.a[static_cast<std::size_t>(70 * x.a_row())] = std::numeric_limits<float>::infinity();
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
    for (std::int64_t r = 0; r < x.m; ++r)
      for (std::int64_t j = 0; j < x.n; ++j) {
        const auto [expected, absolute] = x.sum(0, r, j);
        if (overflows && r == 70)
          ASSERT_EQ(x.at(0, r, j), expected) << j;
        else
          ASSERT_NEAR(x.at(0, r, j), expected, 0x1p-22 * absolute) << r << ' ' << j;
      }
  }
}

// What ends in registers elsewhere: biases, an addend, bounds, and an activation, which changes a sum by at most 1.5
// times as much.
TEST_F(matrix_unit_test, affine_epilogues) {
  kiln::thread_pool pool(2);
  for (const bool of_rows : {true, false}) {
    product x(100, 90, 170);
    const auto col = random_values<float>(x.n, 5), row = random_values<float>(x.m, 6),
               addend = random_values<float>(x.m * x.n, 7);
    affine_epilogue<float> affine{
        .offset = .25F, .addend = addend.data(), .addend_row = x.n, .clamps = true, .low = -1};
    affine.col_bias[0] = col.data();
    if (of_rows)
      affine.row_bias = row.data(), affine.row_period = x.m, affine.high = 2;
    else
      affine.then = {activation::function::hard_swish};
    x.run(pool, true, 1 << 20, affine);
    for (std::int64_t r = 0; r < x.m; ++r)
      for (std::int64_t j = 0; j < x.n; ++j) {
        const auto [sum, absolute] = x.sum(0, r, j);
        double y = sum + .25 + col[static_cast<std::size_t>(j)] + addend[static_cast<std::size_t>(r * x.n + j)];
        if (of_rows) y += row[static_cast<std::size_t>(r)];
        y = std::min(std::max(y, -1.), of_rows ? 2. : 1e9);
        if (!of_rows) y *= std::clamp(y / 6 + .5, 0., 1.);
        ASSERT_NEAR(x.at(0, r, j), y, (of_rows ? 1 : 1.5) * 0x1p-22 * (absolute + 4));
      }
  }
}

// The rows of a chunk that the prologue changed fit their scratch, also where depths leave room for odd numbers of
// them.
TEST_F(matrix_unit_test, prologues) {
  kiln::thread_pool pool(2);
  for (const auto& [m, k] : {std::array{200, 320}, {238, 1100}, {392, 1792}, {104, 2500}}) {
    SCOPED_TRACE(testing::Message() << m << " rows of " << k);
    product x(m, 128, k);
    const std::int64_t pixels = x.m / 3 + 1;  // images that end within a chunk
    const auto scale = random_values<float>(3 * x.k, 5), shift = random_values<float>(x.k, 6);
    channel_prologue<float> prologue;
    prologue.scale = scale.data(), prologue.shift = shift.data();
    prologue.scale_step = x.k;
    prologue.clamps = true, prologue.low = 0;
    std::vector<float> panels(static_cast<std::size_t>(packed_b_size<float>(x.k, x.n)));
    pack_b(pool, panels.data(), x.b.data(), x.b_row(), 1, x.k, x.n);
    x.p = {.m = x.m, .n = x.n, .k = x.k, .a = x.a.data(), .a_row = x.a_row()};
    x.p.b = panels.data(), x.p.c = x.c.data(), x.p.c_row = x.c_row();
    ASSERT_TRUE(gains_from_matrix_unit(x.p));
    const auto size = static_cast<std::size_t>(gemm_with_prologue_scratch_size(x.p) * pool.size());
    std::vector<float> scratch(size + 16, 5.F);
    gemm_with_prologue(pool, x.p, prologue, pixels, scratch.data());
    for (std::int64_t i = 0; i < x.m; ++i)
      for (std::int64_t c = 0; c < x.k; ++c) {
        float& v = x.a[static_cast<std::size_t>(i * x.a_row() + c)];
        v = std::max(0.F,
                     v * scale[static_cast<std::size_t>(i / pixels * x.k + c)] + shift[static_cast<std::size_t>(c)]);
      }
    x.check();
    for (std::size_t i = size; i < scratch.size(); ++i) ASSERT_EQ(scratch[i], 5.F) << "written after the scratch";
  }
}

// A worker finds the rows there that it wrote in the layer before, unless the right operand is large beside them.
TEST(split_schedule, workers_take_rows) {
  for (const auto& [m, n, k] : {std::array{196, 384, 64}, {196, 576, 96}, {196, 672, 112}, {196, 96, 576}}) {
    const split_schedule cut(m, n, k, 1, 2, m);
    EXPECT_EQ(cut.chunks, 2) << n;
    EXPECT_EQ(cut.chunk_rows, 98) << n;
    EXPECT_EQ(cut.groups, 1) << n;
  }
  EXPECT_EQ(split_schedule(128, 3072, 768, 1, 2, 128).chunks, 1);  // else each would split all of it
  EXPECT_EQ(split_schedule(196, 384, 64, 1, 1, 196).chunks, 1);
}

TEST_F(matrix_unit_test, small_or_strided_products_stay_in_vectors) {
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

// The last one: it holds for the whole process.
TEST_F(matrix_unit_test, that_is_forbidden_takes_nothing) {
  const gemm_problem<float> p{.m = 256, .n = 256, .k = 256};
  ASSERT_TRUE(gains_from_matrix_unit(p));
  matrix_unit::forbid();
  EXPECT_FALSE(gains_from_matrix_unit(p));
  EXPECT_EQ(gemm_scratch_size<float>(p.m, p.n, p.k, 2), 0);
}

}  // namespace

// Products with weights that are stored in floats of 16 bits, against sums in f64; and how such floats are read.
#include "kiln/kernel/gemm/stored_gemm.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernel/isa/random_values.hpp"

namespace {

using namespace kiln::kernels;
using kiln::bfloat16;
using kiln::half;
using kiln::testing::random_values;

template <class Stored> std::vector<float> stored_values(std::int64_t count, unsigned seed) {
  std::vector<float> x = random_values<float>(count, seed);
  for (float& v : x) v = float(Stored(v));
  return x;
}

struct product_case {
  std::int64_t m, n, k, batch = 1;
  bool transposed = false;  // B's columns are contiguous
  std::int64_t task_rows = gemm_problem<float>().task_rows;
};

template <class Stored> void check(kiln::thread_pool& pool, const product_case& c) {
  SCOPED_TRACE(testing::Message() << c.m << 'x' << c.n << 'x' << c.k << " batch " << c.batch << " tasks of "
                                  << c.task_rows << " rows" << (c.transposed ? ", transposed" : ""));
  const auto a = random_values<float>(c.batch * c.m * (c.k + 1), 1);
  const auto b = stored_values<Stored>(c.k * c.n, 2);
  const std::ptrdiff_t b_row = c.transposed ? 1 : c.n, b_col = c.transposed ? c.k : 1;
  std::vector<Stored> packed(static_cast<std::size_t>(packed_b_size<float>(c.k, c.n)));
  pack_b<Stored, float>(pool, packed.data(), b.data(), b_row, b_col, c.k, c.n);
  const std::int64_t c_row = c.n + 3, gap = 5;  // rows between the matrices of C
  std::vector<float> out(static_cast<std::size_t>(c.batch * (c.m + gap) * c_row), -77.F);
  gemm_problem<float> p{.m = c.m, .n = c.n, .k = c.k};
  p.a = a.data(), p.a_row = c.k + 1;
  p.c = out.data(), p.c_row = c_row;
  p.batch = c.batch, p.a_batch = c.m * (c.k + 1), p.c_batch = (c.m + gap) * c_row;
  p.task_rows = c.task_rows;
  // a line beyond those that it asks for, which stays as it is; NaN before it is written
  const std::int64_t size = stored_gemm_scratch_size(c.batch * c.m, c.n, c.k, pool.size());
  std::vector<kiln::vec<float, 16>> scratch(static_cast<std::size_t>((size + 15) / 16 + 1),
                                            kiln::broadcast<kiln::vec<float, 16>>(std::nanf("")));
  scratch.back() = kiln::broadcast<kiln::vec<float, 16>>(5);
  auto* const floats = reinterpret_cast<float*>(scratch.data());
  for (int run = 0; run < 2; ++run)  // the second finds what the first left
    stored_gemm(pool, p, packed.data(), floats,
                [&](std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* at,
                    std::ptrdiff_t step) {
                  for (std::int64_t r = 0; r < rows; ++r)
                    for (std::int64_t j = 0; j < cols; ++j) at[r * step + j] += float(row0 + r) - 2 * float(col0 + j);
                });
  for (int i = 0; i < 16; ++i) ASSERT_EQ(scratch.back()[i], 5.F) << "written after the scratch";
  const double tolerance = 1e-6 * (static_cast<double>(c.k) + 4 * static_cast<double>(c.batch * c.m + c.n));
  for (std::int64_t i = 0; i < c.batch; ++i)
    for (std::int64_t r = 0; r < c.m + gap; ++r)
      for (std::int64_t j = 0; j < c_row; ++j) {
        const float found = out[static_cast<std::size_t>((i * (c.m + gap) + r) * c_row + j)];
        if (r >= c.m || j >= c.n) {
          ASSERT_EQ(found, -77.F) << "written beside the product";
          continue;
        }
        double sum = static_cast<double>(i * c.m + r) - 2.0 * static_cast<double>(j);
        for (std::int64_t x = 0; x < c.k; ++x)
          sum += static_cast<double>(a[static_cast<std::size_t>((i * c.m + r) * (c.k + 1) + x)]) *
                 static_cast<double>(b[static_cast<std::size_t>(x * b_row + j * b_col)]);
        ASSERT_NEAR(found, sum, tolerance) << i << ' ' << r << ' ' << j;
      }
}

template <class Stored> class stored_gemm_test : public testing::Test {};
using types_of_weights = testing::Types<half, bfloat16>;
TYPED_TEST_SUITE(stored_gemm_test, types_of_weights);

TYPED_TEST(stored_gemm_test, every_partial_vector) {
  kiln::thread_pool pool(3);
  for (const std::int64_t m : {1, 2, 3, 4, 5, 6, 7, 13, 131})
    for (const std::int64_t n : {1, 7, 16, 17, 33, 63, 64, 65, 129})
      check<TypeParam>(pool, {.m = m, .n = n, .k = 5 + m, .transposed = n % 2 == 0});
}

TYPED_TEST(stored_gemm_test, depths_of_several_blocks_and_of_nothing) {
  kiln::thread_pool pool(2);
  for (const std::int64_t k : {0, 1, 1700})
    for (const std::int64_t m : {1, 4, 6, 20, 60}) check<TypeParam>(pool, {.m = m, .n = 150, .k = k});
}

TYPED_TEST(stored_gemm_test, batches_and_tasks_of_few_rows) {
  kiln::thread_pool pool(2);
  for (const std::int64_t m : {1, 3, 9, 70}) check<TypeParam>(pool, {.m = m, .n = 80, .k = 40, .batch = 3});
  check<TypeParam>(pool, {.m = 190, .n = 130, .k = 300, .task_rows = 16});
}

// Every number of the type, in every place of a vector and in one that is not full.
template <class Stored, class Bits> void check_all_numbers(Bits bits_of, int codes) {
  using V = kiln::native_vec<float>;
  constexpr int lanes = kiln::native_lanes<float>;
  for (int first = 0; first < codes; first += lanes) {
    Stored stored[lanes];
    for (int i = 0; i < lanes; ++i) stored[i] = bits_of(first + i);
    for (int n : {lanes, 1 + first / lanes % lanes}) {
      const V read = n == lanes ? load_stored<V>(stored) : load_stored_n<V>(stored, n);
      for (int i = 0; i < lanes; ++i) {
        const float expected = i < n ? static_cast<float>(stored[i]) : 0.F;
        if (std::isnan(expected))
          ASSERT_TRUE(std::isnan(read[i])) << first + i;
        else
          ASSERT_EQ(std::bit_cast<std::uint32_t>(float(read[i])), std::bit_cast<std::uint32_t>(expected)) << first + i;
      }
    }
  }
}

TEST(stored_floats, are_read_exactly) {
  const auto sixteen = []<class T>(T) {
    return [](int code) {
      T x;
      x.bits = static_cast<decltype(x.bits)>(code);
      return x;
    };
  };
  check_all_numbers<half>(sixteen(half()), 1 << 16);
  check_all_numbers<bfloat16>(sixteen(bfloat16()), 1 << 16);
  check_all_numbers<kiln::float8_e4m3fn>(sixteen(kiln::float8_e4m3fn()), 256);
  check_all_numbers<kiln::float8_e5m2>(sixteen(kiln::float8_e5m2()), 256);
  check_all_numbers<std::int8_t>([](int code) { return static_cast<std::int8_t>(code); }, 256);
}

TEST(stored_floats, are_told_from_wider_ones) {
  auto halves = stored_values<half>(37, 3);
  const auto holds = [](const std::vector<float>& x, auto type) {
    return are_stored_exactly<decltype(type)>(reinterpret_cast<const std::byte*>(x.data()),
                                              static_cast<std::int64_t>(x.size()));
  };
  EXPECT_TRUE(holds(halves, half()));
  halves[5] = -0.F, halves[6] = 0x1p-24F, halves[7] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(holds(halves, half()));
  for (const std::size_t place : {0u, 17u, 36u}) {
    auto other = halves;
    other[place] = 1.0F + 0x1p-11F;
    EXPECT_FALSE(holds(other, half())) << place;
    other[place] = 65536;
    EXPECT_FALSE(holds(other, half())) << place;
    EXPECT_FALSE(holds(other, bfloat16())) << place;
  }
  EXPECT_TRUE(holds({0x1.02p100F, -3}, bfloat16()));
}

}  // namespace

// Products of bytes whose operands both vary, by each machine that this level has, against plain sums.
#include <gtest/gtest.h>

#include <random>

#include "kiln/kernel/int8/matrices.hpp"

namespace kiln::kernels {
namespace {

struct sizes {
  std::int64_t batch, m, n, k;
};
enum class order : std::uint8_t { rows, columns, apart };  // which elements are adjacent

// Bytes of some matrices, each rows x columns.
struct stored {
  std::vector<std::byte> bytes;
  std::vector<const std::byte*> at;
  std::ptrdiff_t row, col;
  bool is_signed;

  stored(std::int64_t batch, std::int64_t rows, std::int64_t cols, order o, bool of_signed, unsigned seed)
      : row(o == order::columns ? 1
            : o == order::rows  ? cols + 3
                                : 2 * cols),
        col(o == order::columns ? rows + 5
            : o == order::rows  ? 1
                                : 2),
        is_signed(of_signed) {
    const std::int64_t each = (rows - 1) * row + (cols - 1) * col + 1;
    std::mt19937 engine(seed);
    for (std::int64_t i = 0; i < batch * each; ++i)
      bytes.push_back(static_cast<std::byte>(seed % 5 == 0 ? 0x80 - (i % 3 == 0) : engine()));
    for (std::int64_t b = 0; b < batch; ++b) at.push_back(bytes.data() + b * each);
  }
  std::int64_t number(std::int64_t matrix, std::int64_t r, std::int64_t c) const {
    const std::byte b = at[static_cast<std::size_t>(matrix)][r * row + c * col];
    return is_signed ? std::int64_t{static_cast<std::int8_t>(b)} : std::int64_t{static_cast<std::uint8_t>(b)};
  }
};

template <class Machine>
void expect_sums(thread_pool& pool, const sizes& s, const stored& a, const stored& b, std::int32_t a_zero,
                 std::int32_t b_zero) {
  byte_matrices p{s.batch, s.m,   s.n,   s.k,         a.at.data(), b.at.data(), a.row,
                  a.col,   b.row, b.col, a.is_signed, b.is_signed, a_zero,      b_zero};
  std::vector<std::int32_t> scratch(static_cast<std::size_t>(byte_matrices_scratch<Machine>(p, pool.size())), -1),
      made(static_cast<std::size_t>(s.batch * s.m * s.n), -1);
  multiply_byte_matrices<Machine>(
      pool, p, scratch.data(),
      [&](std::int64_t, std::int64_t row0, std::int64_t col0, std::int32_t* sums) {
        return integer_sums{sums, integer_task_cols, row0, col0};
      },
      [&](const auto& part, std::int64_t matrix, std::int64_t row0, std::int64_t rows, std::int64_t col0,
          std::int64_t cols) {
        for (std::int64_t r = 0; r < rows; ++r)
          std::copy_n(part.sums + r * part.row, cols, made.data() + (matrix * s.m + row0 + r) * s.n + col0);
      });
  for (std::int64_t i = 0; i < s.batch * s.m * s.n; ++i) {
    const std::int64_t matrix = i / (s.m * s.n), r = i / s.n % s.m, c = i % s.n;
    std::int64_t sum = 0;
    for (std::int64_t k = 0; k < s.k; ++k) sum += (a.number(matrix, r, k) - a_zero) * (b.number(matrix, k, c) - b_zero);
    ASSERT_EQ(made[static_cast<std::size_t>(i)], sum) << "matrix " << matrix << " row " << r << " column " << c;
  }
}

template <class Machine> void expect_exact(bool present) {
  if (!present) GTEST_SKIP() << "this processor has no such instruction";
  const sizes all[] = {{1, 1, 1, 1},   {2, 1, 65, 64},  {3, 5, 17, 7},     {12, 16, 33, 64},
                       {1, 70, 3, 66}, {2, 61, 300, 9}, {1, 130, 70, 131}, {1, 8, 64, 1100}};
  for (const unsigned threads : {1U, 2U}) {
    thread_pool pool(threads);
    unsigned seed = 0;
    for (const sizes& s : all)
      for (const order left : {order::rows, order::columns, order::apart})
        for (const order right : {order::rows, order::columns, order::apart})
          for (const int signs : {0, 1, 2, 3}) {
            const bool a_signed = (signs & 1) != 0, b_signed = (signs & 2) != 0;
            SCOPED_TRACE(::testing::Message() << s.batch << " of " << s.m << 'x' << s.n << 'x' << s.k << ", orders "
                                              << int(left) << int(right) << ", signs " << signs);
            const stored a(s.batch, s.m, s.k, left, a_signed, ++seed), b(s.batch, s.k, s.n, right, b_signed, ++seed);
            const bool centered = seed % 3 == 0;  // as the machine has them
            expect_sums<Machine>(pool, s, a, b,
                                 centered   ? 0
                                 : a_signed ? -128
                                            : 255,
                                 centered   ? (b_signed ? 0 : 128)
                                 : b_signed ? 127
                                            : 3);
            if (::testing::Test::HasFatalFailure()) return;
          }
  }
}

TEST(byte_matrices_of_a_level, words) { expect_exact<two_words>(true); }

TEST(byte_matrices_of_a_level, bytes) {
  const bool longer = native_bytes == 64 || __builtin_cpu_supports("avx512vl");
  expect_exact<four_bytes>(native_bytes > 16 && __builtin_cpu_supports("avx512vnni") && longer);
}

TEST(byte_matrices_of_a_level, bytes_without_avx512) {
  if constexpr (native_bytes == 32)
    expect_exact<four_bytes_by<true>>(__builtin_cpu_supports("avxvnni"));
  else
    GTEST_SKIP() << "only the level of 256 bits uses this encoding";
}

}  // namespace
}  // namespace kiln::kernels

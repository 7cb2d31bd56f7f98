// Products of bytes by each machine that this level has, against plain sums.
#include <gtest/gtest.h>

#include <random>

#include "kiln/kernel/int8/gemm.hpp"
#include "kiln/kernel/int8/im2col.hpp"

namespace kiln::kernels {
namespace {

template <class Machine> class products {
 public:
  products(std::int64_t m, std::int64_t n, std::int64_t k, bool is_signed, bool extreme)
      : m_(m), n_(n), k_(k), is_signed_(is_signed) {
    std::mt19937 engine(static_cast<unsigned>(m + 7 * n + 31 * k));
    for (std::int64_t i = 0; i < m * k; ++i) a_.push_back(static_cast<std::byte>(extreme ? 0x80 : engine()));
    for (std::int64_t i = 0; i < k * n; ++i) b_.push_back(static_cast<std::int8_t>(extreme ? -128 : engine()));
  }

  std::vector<std::int32_t> computed(thread_pool& pool) const {
    std::vector<std::int32_t> packed(static_cast<std::size_t>(packed_integers_size<Machine>(k_, n_)));
    pack_integers<Machine>(pool, packed.data(), b_.data(), n_, 1, k_, n_);
    integer_problem p;
    p.m = m_, p.n = n_, p.k = k_;
    p.a_row = integer_words<Machine>(k_) * 4;
    std::vector<std::byte> left(static_cast<std::size_t>(m_ * p.a_row));
    conv_problem rows;
    rows.in_channels = k_;
    rows.input[2] = m_;
    byte_image image;
    image.at = a_.data();
    image.channel = 1;
    image.axis[2] = k_;
    image.is_signed = is_signed_;
    gather_windows<Machine>(pool, rows, image, left.data(), p.a_row);
    p.a = left.data();
    p.b = packed.data();
    std::vector<std::int32_t> shift(static_cast<std::size_t>(round_up(n_, 64)), 0);
    for (std::int64_t j = 0; is_signed_ && j < n_; ++j)
      shift[static_cast<std::size_t>(j)] = -Machine::offset * packed[static_cast<std::size_t>(j)];
    p.shift = shift.data();
    std::vector<std::int32_t> c(static_cast<std::size_t>(m_ * n_));
    std::vector<std::int32_t> scratch(static_cast<std::size_t>(integer_gemm_scratch(pool.size())));
    integer_gemm<Machine>(
        pool, p, scratch.data(),
        [&](std::int64_t row0, std::int64_t row_count, std::int64_t col0, std::int64_t cols, const std::int32_t* sums,
            std::ptrdiff_t sums_row) {
          shifted_sums(p, row0, row_count, col0, cols, sums, sums_row, [&](std::int64_t r, std::int64_t j, auto sum) {
            store_n(c.data() + (row0 + r) * n_ + col0 + j, sum,
                    static_cast<int>(std::min<std::int64_t>(native_lanes<std::int32_t>, cols - j)));
          });
        });
    return c;
  }
  std::vector<std::int32_t> expected() const {
    std::vector<std::int32_t> c;
    for (std::int64_t i = 0; i < m_; ++i)
      for (std::int64_t j = 0; j < n_; ++j) {
        std::int32_t sum = 0;
        for (std::int64_t d = 0; d < k_; ++d) {
          const auto bits = static_cast<std::uint8_t>(a_[static_cast<std::size_t>(i * k_ + d)]);
          sum += (is_signed_ ? static_cast<std::int8_t>(bits) : bits) * b_[static_cast<std::size_t>(d * n_ + j)];
        }
        c.push_back(sum);
      }
    return c;
  }

 private:
  std::int64_t m_, n_, k_;
  bool is_signed_;
  std::vector<std::byte> a_;
  std::vector<std::int8_t> b_;
};

template <class Machine> void expect_exact() {
  thread_pool pool(2);
  for (const std::int64_t m : {1, 7, 80})
    for (const std::int64_t n : {1, 17, 65, 300})
      for (const std::int64_t k : {1, 4, 101})
        for (const bool is_signed : {false, true})
          for (const bool extreme : {false, true}) {
            const products<Machine> p(m, n, k, is_signed, extreme);
            ASSERT_EQ(p.computed(pool), p.expected()) << m << ' ' << n << ' ' << k << ' ' << is_signed << extreme;
          }
}

TEST(integers_of_a_level, words) { expect_exact<two_words>(); }

TEST(integers_of_a_level, bytes) {
  if constexpr (native_bytes == 64) {
    if (!__builtin_cpu_supports("avx512vnni")) GTEST_SKIP() << "this processor has no AVX-512 VNNI";
    expect_exact<four_bytes>();
  } else {
    GTEST_SKIP() << "only 512-bit registers multiply bytes";
  }
}

}  // namespace
}  // namespace kiln::kernels

#include "kiln/kernel/gemm/depth_blocks.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "kernel/isa/convolution_check.hpp"
#include "kiln/kernel/gemm/gemm.hpp"

namespace {

using namespace kiln::kernels;
using kiln::testing::random_values;

struct span_of_rows {
  std::int64_t begin, rows, next;
  bool last;
  bool operator==(const span_of_rows&) const = default;
};

std::vector<span_of_rows> all(depth_blocks blocks) {
  std::vector<span_of_rows> out;
  for (bool last = false; !last; blocks.advance()) {
    last = blocks.last();
    out.push_back({blocks.begin(), blocks.rows(), blocks.next_rows(), last});
  }
  return out;
}

TEST(depth_blocks, are_alike_or_grow) {
  using spans = std::vector<span_of_rows>;
  EXPECT_EQ(all({1000, 512, false}), (spans{{0, 512, 488, false}, {512, 488, 0, true}}));
  EXPECT_EQ(all({512, 512, false}), (spans{{0, 512, 0, true}}));
  EXPECT_EQ(all({500, 200, true}),
            (spans{{0, 64, 96, false}, {64, 96, 144, false}, {160, 144, 196, false}, {304, 196, 0, true}}));
  EXPECT_EQ(all({900, 200, true}).back(), (span_of_rows{704, 196, 0, true}));
  EXPECT_EQ(all({30, 16, true}), (spans{{0, 16, 14, false}, {16, 14, 0, true}}));
  EXPECT_EQ(all({0, 1, true}), (spans{{0, 0, 0, true}}));
}

TEST(worker_visits, tell_the_first_one_of_each_worker) {
  worker_visits visits;
  EXPECT_TRUE(visits.first(3));
  EXPECT_TRUE(visits.first(0));
  EXPECT_FALSE(visits.first(3));
  EXPECT_TRUE(visits.first(63));
  EXPECT_FALSE(visits.first(64)) << "nobody counts those";
}

template <class T> class depth_blocks_test : public testing::Test {};
using scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(depth_blocks_test, scalars);

// One worker's first panel comes in growing blocks and its second one, with the same columns, in whole ones.
TYPED_TEST(depth_blocks_test, panels_in_growing_and_in_whole_blocks_have_equal_sums) {
  using T = TypeParam;
  constexpr std::int64_t width = register_tile<T>::width;
  kiln::thread_pool pool(1);
  for (const std::int64_t m : {4 * register_tile<T>::rows, 49, 131})
    for (const std::int64_t k : {130, 1031, 2600}) {
      SCOPED_TRACE(testing::Message() << m << 'x' << k);
      const std::int64_t n = 16 * width;
      ASSERT_TRUE(depth_blocks::grows<T>(m));
      const auto a = random_values<T>(m * k, 1), columns = random_values<T>(k * width, 2);
      std::vector<T> b(static_cast<std::size_t>(k * n)), packed(static_cast<std::size_t>(packed_b_size<T>(k, n))),
          c(static_cast<std::size_t>(m * n));
      for (std::int64_t i = 0; i < k * n; ++i)
        b[static_cast<std::size_t>(i)] = columns[static_cast<std::size_t>(i / n * width + i % width)];
      pack_b(pool, packed.data(), b.data(), n, 1, k, n);
      gemm_problem<T> p{.m = m, .n = n, .k = k};
      p.a = a.data(), p.a_row = k, p.b = packed.data(), p.c = c.data(), p.c_row = n;
      p.matrix_unit = false;
      gemm(pool, p, static_cast<T*>(nullptr));
      for (std::size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], c[i / n * n + i % width]) << i;
      for (std::int64_t r = 0; r < m; ++r)
        for (std::int64_t j = 0; j < width; ++j) {
          double sum = 0;
          for (std::int64_t x = 0; x < k; ++x)
            sum += static_cast<double>(a[static_cast<std::size_t>(r * k + x)]) *
                   static_cast<double>(columns[static_cast<std::size_t>(x * width + j)]);
          ASSERT_NEAR(static_cast<double>(c[static_cast<std::size_t>(r * n + j)]), sum,
                      (std::is_same_v<T, float> ? 1e-6 : 1e-14) * static_cast<double>(k));
        }
    }
}

// Few rows meet a panel, so that each of their tiles fetches more lines than it has steps.
TYPED_TEST(depth_blocks_test, few_rows_of_large_products) {
  using T = TypeParam;
  kiln::thread_pool two(2);
  for (const std::int64_t m : {7, 10, 13, 18})
    for (const std::int64_t k : {130, 1031})
      for (const std::int64_t n : {260, 1000}) {
        SCOPED_TRACE(testing::Message() << m << 'x' << n << 'x' << k);
        const auto a = random_values<T>(m * k, 1), b = random_values<T>(k * n, 2);
        std::vector<T> packed(static_cast<std::size_t>(packed_b_size<T>(k, n))),
            expected(static_cast<std::size_t>(m * n)), c(expected),
            scratch(static_cast<std::size_t>(gemm_unpacked_scratch_size<T>(m, n, k, two.size())));
        pack_b(two, packed.data(), b.data(), n, 1, k, n);
        gemm_problem<T> p{.m = m, .n = n, .k = k};
        p.a = a.data(), p.a_row = k, p.c_row = n;
        p.b = b.data(), p.b_row = n, p.c = expected.data();
        gemm_unpacked(two, p, scratch.data());
        p.b = packed.data(), p.c = c.data();
        gemm(two, p, scratch.data());
        for (std::size_t i = 0; i < c.size(); ++i)
          ASSERT_NEAR(c[i], expected[i], (std::is_same_v<T, float> ? 1e-6 : 1e-14) * static_cast<double>(k)) << i;
      }
}

template <class T> class depth_blocks_of_convolutions : public testing::Test {};
TYPED_TEST_SUITE(depth_blocks_of_convolutions, kiln::testing::convolved);

TYPED_TEST(depth_blocks_of_convolutions, have_the_same_bits_however_they_are_cut) {
  using T = TypeParam;
  conv_problem p;
  p.batch = 1, p.in_channels = 130, p.out_channels = 300, p.groups = 1;
  p.input = {1, 7, 7}, p.kernel = {1, 3, 3}, p.pad_begin = p.pad_end = {0, 1, 1};
  const auto planes = random_values<T>(p.in_channels * p.input_pixels(), 1);
  std::vector<T> in(planes.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i % 49 * 130 + i / 49] = planes[i];
  const auto w = random_values<T>(p.out_channels * p.depth(), 2);
  const image_layout from{true, p.in_channels}, to{true, p.out_channels};
  std::vector<T> expected;
  for (const unsigned workers : {1U, 2U, 5U}) {
    kiln::thread_pool pool(workers);
    const auto c = kiln::testing::plan_convolution<T>(p, workers, conv_method::nhwc_gemm, from, to);
    const std::vector<T> packed = kiln::testing::packed_weights(pool, p, conv_method::nhwc_gemm, w);
    std::vector<T> out(static_cast<std::size_t>(p.out_channels * p.output_pixels())),
        scratch(static_cast<std::size_t>(c->scratch_size()) + 16);
    c->run(pool, in.data(), packed.data(), out.data(), scratch.data());
    if (expected.empty()) expected = out;
    ASSERT_EQ(out, expected) << workers;
  }
  const std::vector<double> sums = kiln::testing::naive(p, planes, w);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::size_t channel = i / 49, pixel = i % 49;
    ASSERT_NEAR(static_cast<double>(expected[pixel * 300 + channel]), sums[i],
                (std::is_same_v<T, float> ? 1e-6 : 1e-14) * static_cast<double>(p.depth()));
  }
}

}  // namespace

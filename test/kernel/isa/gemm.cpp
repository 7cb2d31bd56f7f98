#include "kiln/kernel/gemm/gemm.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <vector>

#include "kernel/isa/random_values.hpp"

namespace {

using namespace kiln::kernels;
using kiln::testing::random_values;

enum class right_operand { packed, unpacked };

struct layout_case {
  bool a_transposed = false;
  bool b_transposed = false;
  std::int64_t spread = 1;  // every stride of A and B times this
};

template <class T>
void check(kiln::thread_pool& pool, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
           right_operand form, layout_case layout = {}, bool shared_b = false) {
  SCOPED_TRACE(testing::Message() << m << 'x' << n << 'x' << k << " batch " << batch << " form "
                                  << static_cast<int>(form) << " strides " << layout.a_transposed << layout.b_transposed
                                  << layout.spread);
  const std::int64_t s = layout.spread;
  const auto a = random_values<T>(batch * m * k * s, 1);
  const auto b = random_values<T>(batch * k * n * s, 2);
  const std::int64_t c_row = n + 3;
  const T guard = T(-77);
  constexpr std::int64_t behind = 16;  // rows that nobody may write
  std::vector<T> c(static_cast<std::size_t>((batch * m + behind) * c_row), guard);
  gemm_problem<T> p{.m = m, .n = n, .k = k};
  p.a = a.data();
  p.a_row = (layout.a_transposed ? 1 : k) * s;
  p.a_col = (layout.a_transposed ? m : 1) * s;
  p.b_row = (layout.b_transposed ? 1 : n) * s;
  p.b_col = (layout.b_transposed ? k : 1) * s;
  p.b = b.data();
  p.c = c.data();
  p.c_row = c_row;
  p.batch = batch;
  p.a_batch = m * k * s;
  p.b_batch = shared_b ? 0 : k * n * s;
  p.c_batch = m * c_row;
  const std::int64_t true_b_batch = p.b_batch;
  std::vector<std::atomic<int>> visits(static_cast<std::size_t>((batch * m + behind) * n));
  const auto epilogue = [&](std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, T* at,
                            std::ptrdiff_t step) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < cols; ++j) {
        ++visits[static_cast<std::size_t>((row0 + r) * n + col0 + j)];
        at[r * step + j] += T(row0 + r) - T(2) * T(col0 + j);
      }
  };
  if (form == right_operand::packed) {
    const std::int64_t each = packed_b_size<T>(k, n);
    std::vector<T> packed(static_cast<std::size_t>(each * batch), T(9));
    for (std::int64_t i = 0; i < batch; ++i)
      pack_b(pool, packed.data() + i * each, b.data() + i * true_b_batch, p.b_row, p.b_col, k, n);
    p.b = packed.data();
    p.b_batch = shared_b ? 0 : each;
    std::vector<T> scratch(static_cast<std::size_t>(gemm_scratch_size<T>(batch * m, n, k, pool.size())), T(9));
    gemm(pool, p, scratch.data(), epilogue);
  } else {
    std::vector<T> scratch(static_cast<std::size_t>(gemm_unpacked_scratch_size<T>(batch * m, n, k, pool.size())), T(9));
    gemm_unpacked(pool, p, scratch.data(), epilogue);
  }
  for (std::size_t i = static_cast<std::size_t>(batch * m * c_row); i < c.size(); ++i)
    ASSERT_EQ(c[i], guard) << "written after the last row";
  const double tolerance =
      (std::is_same_v<T, float> ? 1e-6 : 1e-14) * (static_cast<double>(k) + 4 * static_cast<double>(batch * m + n));
  for (std::int64_t i = 0; i < batch; ++i)
    for (std::int64_t r = 0; r < m; ++r)
      for (std::int64_t j = 0; j < c_row; ++j) {
        const double found = c[static_cast<std::size_t>((i * m + r) * c_row + j)];
        if (j >= n) {
          ASSERT_EQ(found, guard) << "written beyond the row";
          continue;
        }
        double sum = static_cast<double>(i * m + r) - 2.0 * static_cast<double>(j);
        for (std::int64_t x = 0; x < k; ++x)
          sum += static_cast<double>(a[static_cast<std::size_t>(i * p.a_batch + r * p.a_row + x * p.a_col)]) *
                 static_cast<double>(b[static_cast<std::size_t>(i * true_b_batch + x * p.b_row + j * p.b_col)]);
        ASSERT_NEAR(found, sum, tolerance) << i << ' ' << r << ' ' << j;
        ASSERT_EQ(visits[static_cast<std::size_t>((i * m + r) * n + j)].load(), 1);
      }
}

template <class T> class gemm_test : public testing::Test {};
using scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(gemm_test, scalars);

TYPED_TEST(gemm_test, every_partial_vector) {
  kiln::thread_pool pool(3);
  for (const right_operand form : {right_operand::packed, right_operand::unpacked})
    for (std::int64_t m : {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 25, 131})
      for (std::int64_t n : {1, 7, 15, 16, 17, 31, 32, 33, 48, 50, 63, 64, 65, 100, 129, 200})
        check<TypeParam>(pool, m, n, 5 + m, 1, form);
}

TYPED_TEST(gemm_test, products_of_one_tile) {
  kiln::thread_pool pool(2);
  constexpr std::int64_t width = register_tile<TypeParam>::width;
  constexpr std::int64_t far = 1024 * 1024 / static_cast<std::int64_t>(sizeof(TypeParam)) / width + 3;
  for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, std::int64_t{255}, far})
    for (const std::int64_t m : {1, 4, 5})
      for (const std::int64_t n : {std::int64_t{3}, width, width + 1})
        for (const bool transposed : {false, true})
          check<TypeParam>(pool, m, n, k, 1, right_operand::packed, {transposed, false, 1});
  for (const bool shared_b : {false, true}) check<TypeParam>(pool, 1, width, 9, 3, right_operand::packed, {}, shared_b);
}

TYPED_TEST(gemm_test, strided_operands) {
  kiln::thread_pool pool(2);
  for (const right_operand form : {right_operand::packed, right_operand::unpacked})
    for (int bits = 0; bits < 8; ++bits)
      for (std::int64_t n : {9, 64, 83})
        check<TypeParam>(pool, 14, n, 37, 1, form, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0 ? 2 : 1});
}

// Rows of the right operand that are multiplied at a time, which the level decides.
template <class T>
constexpr std::int64_t deepest = 192 * 1024 / static_cast<std::int64_t>(sizeof(T)) / register_tile<T>::width;

TYPED_TEST(gemm_test, deep_products_are_cut) {
  ASSERT_EQ(depth_block<TypeParam>(deepest<TypeParam>), deepest<TypeParam>);
  ASSERT_LT(depth_block<TypeParam>(deepest<TypeParam> + 1), deepest<TypeParam>);
  kiln::thread_pool pool(2);
  for (const right_operand form : {right_operand::packed, right_operand::unpacked})
    for (std::int64_t k :
         {deepest<TypeParam> - 1, deepest<TypeParam>, deepest<TypeParam> + 1, 9 * deepest<TypeParam> / 4})
      for (std::int64_t m : {1, 6, 13}) check<TypeParam>(pool, m, 70, k, 1, form);
}

// Some rows meet short blocks of a right operand that exceeds the second-level cache: even ones, whose sums go on.
TYPED_TEST(gemm_test, blocks_of_far_panels_that_some_rows_meet_are_short) {
  const std::int64_t short_block = far_depth_block<TypeParam>(1000, 16);
  ASSERT_LT(short_block, depth_block<TypeParam>(1000));
  ASSERT_EQ(far_depth_block<TypeParam>(1, 16), 1);
  ASSERT_EQ(far_depth_block<TypeParam>(1000, 49), depth_block<TypeParam>(1000));
  kiln::thread_pool pool(2);
  for (const std::int64_t m : {7, 16, 31, 48})
    for (const std::int64_t k : {short_block - 1, short_block + 1, std::int64_t{1000}})
      for (const std::int64_t n : {430, 1500}) check<TypeParam>(pool, m, n, k, 1, right_operand::packed);
}

// When the first tile of rows has its last sums, those of the last row lack just the last block. (All factors are 1;
// the first panel aside, which may begin with still shorter blocks.)
TYPED_TEST(gemm_test, far_panels_are_multiplied_in_short_blocks) {
  constexpr std::int64_t m = 31, n = 300, k = 1000;
  kiln::thread_pool pool(1);
  const std::vector<TypeParam> ones(static_cast<std::size_t>(k * n), TypeParam(1));
  std::vector<TypeParam> packed(static_cast<std::size_t>(packed_b_size<TypeParam>(k, n))),
      c(static_cast<std::size_t>(m * n)), scratch(static_cast<std::size_t>(gemm_scratch_size<TypeParam>(m, n, k, 1)));
  pack_b(pool, packed.data(), ones.data(), n, 1, k, n);
  gemm_problem<TypeParam> p{.m = m, .n = n, .k = k};
  p.a = ones.data(), p.a_row = k, p.b = packed.data(), p.c = c.data(), p.c_row = n;
  p.matrix_unit = false;
  TypeParam before(0);
  gemm(pool, p, scratch.data(),
       [&](std::int64_t row0, std::int64_t, std::int64_t, std::int64_t, TypeParam* at, std::ptrdiff_t step) {
         if (row0 == 0) before = at[(m - 1) * step];
       });
  const std::int64_t block = far_depth_block<TypeParam>(k, m);
  EXPECT_EQ(before, static_cast<TypeParam>((ceil_div(k, block) - 1) * block));
  EXPECT_EQ(c.back(), static_cast<TypeParam>(k));
}

// Of a right operand that exceeds the second-level cache, a few rows read several parts of the depth side by side.
TYPED_TEST(gemm_test, few_rows_stream_parts_of_the_depth) {
  ASSERT_EQ(streamed_parts(1, true), 4);
  kiln::thread_pool pool(2);
  for (std::int64_t m : {1, 2, 3, 4, 5, 6})
    for (std::int64_t k : {1, 3, 700, 1025, 1026, 1027, 1028})
      for (std::int64_t n : {70, 300}) check<TypeParam>(pool, m, n, k, 1, right_operand::packed);
}

// However columns are cut into panels and tasks, their elements are summed in one order.
TYPED_TEST(gemm_test, equal_columns_have_equal_sums) {
  kiln::thread_pool pool(2);
  for (std::int64_t m : {1, 2, 3, 4, 5, 6, 7})
    for (std::int64_t k : {64, 700, 1031})
      for (std::int64_t n : {70, 300, 1000}) {
        SCOPED_TRACE(testing::Message() << m << 'x' << n << 'x' << k);
        const auto a = random_values<TypeParam>(m * k, 1), column = random_values<TypeParam>(k, 2);
        std::vector<TypeParam> b(static_cast<std::size_t>(k * n)), packed(packed_b_size<TypeParam>(k, n) + 16),
            c(static_cast<std::size_t>(m * n));
        for (std::size_t i = 0; i < b.size(); ++i) b[i] = column[i / static_cast<std::size_t>(n)];
        pack_b(pool, packed.data(), b.data(), n, 1, k, n);
        gemm_problem<TypeParam> p{.m = m, .n = n, .k = k};
        p.a = a.data(), p.a_row = k, p.a_col = 1, p.b = packed.data(), p.c = c.data(), p.c_row = n;
        gemm(pool, p, static_cast<TypeParam*>(nullptr));
        for (std::size_t i = 0; i < c.size(); ++i)
          ASSERT_EQ(c[i], c[i / static_cast<std::size_t>(n) * static_cast<std::size_t>(n)]) << i;
      }
}

// More rows than `streamed_rows` have the sums of any number of rows, near and far, of one block of the depth or
// several.
TYPED_TEST(gemm_test, some_rows_have_the_sums_of_many) {
  kiln::thread_pool pool(2);
  constexpr std::int64_t many = 13;
  for (std::int64_t k : {64, 700, 1031})
    for (std::int64_t n : {70, 1000}) {
      const auto a = random_values<TypeParam>(many * k, 1), b = random_values<TypeParam>(k * n, 2);
      std::vector<TypeParam> packed(packed_b_size<TypeParam>(k, n));
      pack_b(pool, packed.data(), b.data(), n, 1, k, n);
      const auto product = [&](std::int64_t m) {
        std::vector<TypeParam> c(static_cast<std::size_t>(m * n));
        gemm_problem<TypeParam> p{.m = m, .n = n, .k = k};
        p.a = a.data(), p.a_row = k, p.a_col = 1, p.b = packed.data(), p.c = c.data(), p.c_row = n;
        gemm(pool, p, static_cast<TypeParam*>(nullptr));
        return c;
      };
      std::vector<TypeParam> expected = product(many);
      for (std::int64_t m = most_streamed_rows<TypeParam>; m > streamed_rows; --m) {
        expected.resize(static_cast<std::size_t>(m * n));
        EXPECT_EQ(product(m), expected) << m << 'x' << n << 'x' << k;
      }
    }
}

TYPED_TEST(gemm_test, stream_tiles_of_every_size) {
  constexpr int lanes = kiln::native_lanes<TypeParam>, c_row = register_tile<TypeParam>::width + 1, most_depth = 9,
                most_rows = most_streamed_rows<TypeParam>;
  const auto a = random_values<TypeParam>(most_rows * most_depth, 1);
  const auto b = random_values<TypeParam>(most_depth * register_tile<TypeParam>::width, 2);
  const auto before = random_values<TypeParam>(most_rows * c_row, 3);
  constexpr double tolerance = std::is_same_v<TypeParam, float> ? 2e-6 : 4e-15;
  const auto check_tile = [&](int rows, int vectors, int cols, std::int64_t depth, bool accumulate, bool far) {
    SCOPED_TRACE(testing::Message() << rows << 'x' << cols << 'x' << depth << ' ' << accumulate << far);
    const TypeParam* row[most_rows] = {};
    for (int r = 0; r < rows; ++r) row[r] = a.data() + r * most_depth;
    std::vector<TypeParam> c = before;
    run_stream_tile<TypeParam>(rows, vectors, depth, row, linear_step{1}, b.data(), vectors * lanes, c.data(), c_row,
                               cols, accumulate, far);
    for (int r = 0; r < most_rows; ++r)
      for (int j = 0; j < c_row; ++j) {
        const auto at = static_cast<std::size_t>(r * c_row + j);
        if (r >= rows || j >= cols) {
          ASSERT_EQ(c[at], before[at]) << "written beyond the tile: " << r << ' ' << j;
          continue;
        }
        double sum = accumulate ? static_cast<double>(before[at]) : 0;
        for (std::int64_t k = 0; k < depth; ++k)
          sum += static_cast<double>(row[r][k]) *
                 static_cast<double>(b[static_cast<std::size_t>(k * vectors * lanes + j)]);
        ASSERT_NEAR(static_cast<double>(c[at]), sum, tolerance) << r << ' ' << j;
      }
  };
  for (const bool far : {false, true})
    for (const bool accumulate : {false, true})
      for (int rows = 1; rows <= most_rows; ++rows)
        for (int vectors = 1; vectors <= register_tile<TypeParam>::vectors; ++vectors)
          for (std::int64_t depth = 0; depth <= most_depth; ++depth)
            for (const int last : {1, lanes - 1, lanes})
              check_tile(rows, vectors, (vectors - 1) * lanes + last, depth, accumulate, far);
}

// from some depth on; shorter ones are read in place unless their rows begin within a line
TYPED_TEST(gemm_test, panels_of_whole_vectors_are_packed_on_their_way) {
  constexpr std::int64_t width = register_tile<TypeParam>::width, lanes = kiln::native_lanes<TypeParam>;
  kiln::thread_pool pool(2), many(16);
  for (std::int64_t m : {6, 7, 12, 70})
    for (std::int64_t n : {std::int64_t{128}, std::int64_t{1024},  // rows of the latter are whole pages apart
                           2 * width - lanes, 3 * (width - lanes) + 4})
      for (std::int64_t k : {1, 2, 137, 138}) check<TypeParam>(pool, m, n, k, 1, right_operand::unpacked);
  for (std::int64_t n : {std::int64_t{128}, 2 * width - 2 * lanes})  // a second block adds
    check<TypeParam>(pool, 13, n, deepest<TypeParam> + 1, 1, right_operand::unpacked);
  // Few rows, which use no copy, are left for the last task.
  const gemm_problem<TypeParam> p{.m = 10769, .n = register_tile<TypeParam>::width, .k = 138};
  const gemm_split<TypeParam> split(p, false, many.size(), 96, p.m);
  ASSERT_EQ(p.m - (split.chunks - 1) * split.chunk_rows, 2);
  check<TypeParam>(many, p.m, p.n, p.k, 1, right_operand::unpacked);
}

// Lines of the matrix are multiplied four at a time, rows added eight at a time; short ones are left to the tiles.
TYPED_TEST(gemm_test, vectors) {
  kiln::thread_pool pool(2);
  constexpr std::int64_t lanes = kiln::native_lanes<TypeParam>;
  for (const std::int64_t depth : {2 * lanes - 1, 2 * lanes, 4 * lanes + 3, std::int64_t{301}})
    for (const std::int64_t count : {1, 2, 4, 7, 1030})
      for (const bool transposed : {false, true})
        for (const std::int64_t batch : {1, 3}) {
          check<TypeParam>(pool, 1, count, depth, batch, right_operand::unpacked, {false, transposed, 1});
          check<TypeParam>(pool, count, 1, depth, batch, right_operand::unpacked, {transposed, false, 1});
        }
  // rows that add up to more than caches hold
  const std::int64_t far = 1024 * 1024 / static_cast<std::int64_t>(sizeof(TypeParam)) / 2000 + 1;
  for (const std::int64_t depth : {far, far + 7}) check<TypeParam>(pool, 1, 2000, depth, 1, right_operand::unpacked);
  check<TypeParam>(pool, 1, 70, 64, 1, right_operand::unpacked, {false, true, 2});
}

TYPED_TEST(gemm_test, batches) {
  for (unsigned threads : {1U, 4U}) {
    kiln::thread_pool pool(threads);
    for (const right_operand form : {right_operand::packed, right_operand::unpacked})
      for (const bool shared_b : {false, true})
        for (std::int64_t m : {1, 5, 16}) check<TypeParam>(pool, m, 33, 20, 5, form, {}, shared_b);
  }
}

TYPED_TEST(gemm_test, empty_dimensions) {
  kiln::thread_pool pool(2);
  for (const right_operand form : {right_operand::packed, right_operand::unpacked}) {
    check<TypeParam>(pool, 3, 20, 0, 2, form);  // a sum of nothing is zero, and still has its epilogue
    check<TypeParam>(pool, 0, 20, 3, 1, form);
    check<TypeParam>(pool, 3, 0, 3, 1, form);
    check<TypeParam>(pool, 3, 20, 3, 0, form);
  }
}

TYPED_TEST(gemm_test, more_workers_than_panels) {
  kiln::thread_pool pool(8);
  check<TypeParam>(pool, 1000, 40, 30, 1, right_operand::packed);
  check<TypeParam>(pool, 1000, 40, 30, 1, right_operand::unpacked);
}

TEST(gemm, neighboring_tasks_share_the_smaller_operand_and_every_place_has_one_task) {
  for (const auto& [wide, far] : {std::pair{false, true}, {true, true}, {true, false}}) {
    const gemm_problem<float> p{
        .m = wide ? 300 : 2000, .n = wide ? 2000 : 300, .k = far ? 1000 : 8, .batch = 3};  // 8 MB or 64 KB
    const gemm_split<float> split(p, true, 4, 48, 128);
    ASSERT_GT(split.chunks, 1);
    ASSERT_GT(split.panels, 1);
    // of small weights each worker reads all
    EXPECT_EQ(split.at(0).panel == split.at(1).panel, wide && far);
    EXPECT_EQ(split.at(0).chunk == split.at(1).chunk, !wide || !far);
    EXPECT_EQ(gemm_split<float>(p, false, 4, 48, 128).by_panels, wide);
    std::vector<int> met(static_cast<std::size_t>(p.batch * split.panels * split.chunks), 0);
    for (std::size_t task = 0; task < met.size(); ++task) {
      const auto [matrix, panel, chunk] = split.at(static_cast<std::int64_t>(task));
      ++met[static_cast<std::size_t>((matrix * split.panels + panel) * split.chunks + chunk)];
    }
    EXPECT_EQ(met, std::vector<int>(met.size(), 1));
  }
}

TEST(gemm, quotients_beyond_32_bits_are_those_of_64) {
  for (const std::int64_t a : {std::int64_t{0}, std::int64_t{7}, std::int64_t{0xffff'ffff}, std::int64_t{1} << 40})
    for (const std::int64_t b : {std::int64_t{1}, std::int64_t{3}, std::int64_t{1} << 33})
      EXPECT_EQ(quotient(a, b), a / b);
}

TEST(gemm, a_right_operand_at_any_address_packs_alike) {
  kiln::thread_pool pool(2);
  const std::int64_t k = 2 * packed_rows_per_task + 7, n = 2 * register_tile<float>::width + 5;
  const auto b = random_values<float>(2 * k * n, 4);
  std::vector<std::byte> moved(b.size() * sizeof(float) + 1);
  std::memcpy(moved.data() + 1, b.data(), b.size() * sizeof(float));
  const std::pair<std::int64_t, std::int64_t> strides[] = {{n, 1}, {1, k}, {2 * n, 2}, {2, 2 * k}};
  for (const auto& [row, col] : strides) {
    std::vector<float> expected(static_cast<std::size_t>(packed_b_size<float>(k, n)), 9.0F), found(expected);
    pack_b(pool, expected.data(), b.data(), row, col, k, n);
    pack_b(pool, found.data(), moved.data() + 1, row, col, k, n);
    EXPECT_EQ(found, expected) << row << ' ' << col;
  }
}

TEST(gemm, packed_panels_are_zero_padded_whole_vectors) {
  kiln::thread_pool pool(1);
  const std::int64_t n = register_tile<float>::width + 3;
  const auto b = random_values<float>(2 * n, 3);
  std::vector<float> packed(static_cast<std::size_t>(packed_b_size<float>(2, n)), 9.0F);
  pack_b(pool, packed.data(), b.data(), n, 1, 2, n);
  const float* last = packed.data() + 2 * register_tile<float>::width;
  for (int j = 0; j < kiln::native_lanes<float>; ++j) {
    EXPECT_EQ(last[j], j < 3 ? b[static_cast<std::size_t>(register_tile<float>::width + j)] : 0.0F);
    EXPECT_EQ(last[kiln::native_lanes<float> + j],
              j < 3 ? b[static_cast<std::size_t>(n + register_tile<float>::width + j)] : 0.0F);
  }
}

TEST(gemm_split, few_tasks_are_shared_evenly) {
  const auto tasks = [](std::int64_t m, std::int64_t panels, unsigned workers, std::int64_t batch = 1) {
    gemm_problem<float> p{.m = m, .n = panels * register_tile<float>::width, .k = 64, .batch = batch};
    const gemm_split<float> split(p, true, workers, 48, 128);
    return batch * split.panels * split.chunks;
  };
  EXPECT_EQ(tasks(169, 1, 2), 4);
  EXPECT_EQ(tasks(49, 3, 2), 6);
  EXPECT_EQ(tasks(20, 3, 2), 3);  // rows too few to cut
  EXPECT_EQ(tasks(169, 1, 1), 2);
  EXPECT_EQ(tasks(169, 2, 2), 8);      // as many rows for each worker
  EXPECT_EQ(tasks(169, 2, 2, 2), 12);  // of one matrix: workers have some of several anyway
}

}  // namespace

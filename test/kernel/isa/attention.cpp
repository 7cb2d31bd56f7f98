// Attention by its definition, on the matrix unit where the machine has one, else in vectors.
#include "kiln/kernel/attention/attention.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernel/isa/random_values.hpp"
#include "kiln/core/half.hpp"

namespace {

using namespace kiln::kernels;
using kiln::testing::random_values;

// Heads of queries, keys and values that lie apart, in buffers of their own.
struct attention_case {
  std::int64_t heads, kv_heads, queries, keys, depth, width;
  std::vector<float> q, k, v, out, mask;
  attention_problem p;

  attention_case(std::int64_t heads_in, std::int64_t kv, std::int64_t rows, std::int64_t cols, std::int64_t d,
                 std::int64_t w, bool causal = false)
      : heads(heads_in), kv_heads(kv), queries(rows), keys(cols), depth(d), width(w) {
    q = random_values<float>(heads * queries * (depth + 1), 1);
    k = random_values<float>(kv_heads * keys * (depth + 2), 2);
    v = random_values<float>(kv_heads * keys * (width + 3), 3);
    p.heads = heads, p.kv_heads = kv_heads, p.queries = queries, p.keys = keys, p.depth = depth, p.value_depth = width;
    p.q.head = queries * (depth + 1), p.q.row = depth + 1;
    p.k.head = keys * (depth + 2), p.k.row = depth + 2;
    p.v.head = keys * (width + 3), p.v.row = width + 3;
    p.out_head = queries * (width + 5), p.out_row = width + 5;
    p.scale = .75F, p.causal = causal;
  }
  // Also in one of the ways alone; false where it leaves that to the other.
  template <class Products = void> bool run(kiln::thread_pool& pool) {
    p.q.at = q.data(), p.k.at = k.data(), p.v.at = v.data();
    out.assign(static_cast<std::size_t>(heads * p.out_head), -77.F);
    p.out = out.data();
    if (!mask.empty()) p.add_mask = mask.data(), p.mask_row = keys, p.mask_col = 1;
    bool right = true;
    std::int64_t size = attention_scratch_size(p, pool.size());
    if constexpr (!std::is_void_v<Products>) size = attention_block<Products>::scratch_size(p, queries);
    // 64-byte lines, NaN before they are written
    std::vector<kiln::vec<float, 16>> scratch(static_cast<std::size_t>(size / 16 + 1),
                                              kiln::broadcast<kiln::vec<float, 16>>(std::nanf("")));
    scratch.back() = kiln::broadcast<kiln::vec<float, 16>>(5);
    float* const at = reinterpret_cast<float*>(scratch.data());
    if constexpr (std::is_void_v<Products>)
      attention(pool, p, at);
    else
      for (std::int64_t h = 0; h < heads; ++h)
        right = attention_block<Products>(p, queries, at).run(0, h, 0, queries) && right;
    EXPECT_EQ(size % 16, 0);
    for (std::int64_t i = size; i < size + 16; ++i) EXPECT_EQ(at[i], 5.F) << "written after the scratch";
    return right;
  }
  float at(std::int64_t h, std::int64_t i, std::int64_t c) const {
    return out[static_cast<std::size_t>(h * p.out_head + i * p.out_row + c)];
  }
  void check() const {
    std::vector<double> weight(static_cast<std::size_t>(keys));
    for (std::int64_t h = 0; h < heads; ++h) {
      const float* const of_k = k.data() + h / (heads / kv_heads) * p.k.head;
      const float* const of_v = v.data() + h / (heads / kv_heads) * p.v.head;
      for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t seen = p.causal ? std::clamp<std::int64_t>(i + 1 + keys - queries, 0, keys) : keys;
        double greatest = -1e30, total = 0;
        for (std::int64_t j = 0; j < seen; ++j) {
          double score = 0;
          for (std::int64_t c = 0; c < depth; ++c)
            score += static_cast<double>(q[static_cast<std::size_t>(h * p.q.head + i * p.q.row + c)]) *
                     static_cast<double>(of_k[j * p.k.row + c]);
          score *= static_cast<double>(p.scale);
          if (!mask.empty()) score += static_cast<double>(mask[static_cast<std::size_t>(i * keys + j)]);
          weight[static_cast<std::size_t>(j)] = score;
          greatest = std::max(greatest, score);
        }
        for (std::int64_t j = 0; j < seen; ++j) {
          double& w = weight[static_cast<std::size_t>(j)];
          total += w = std::exp(w - greatest);
        }
        for (std::int64_t c = 0; c < p.out_row; ++c) {
          if (c >= width) {
            ASSERT_EQ(at(h, i, c), -77.F) << "written beside the results";
            continue;
          }
          double sum = 0;
          for (std::int64_t j = 0; j < seen; ++j)
            sum += weight[static_cast<std::size_t>(j)] * static_cast<double>(of_v[j * p.v.row + c]);
          ASSERT_NEAR(at(h, i, c), seen > 0 ? sum / total : 0, 2e-6) << h << ' ' << i << ' ' << c;
        }
      }
    }
  }
};

TEST(attention_kernel, sizes) {
  for (unsigned threads : {1U, 3U}) {
    kiln::thread_pool pool(threads);
    for (const bool causal : {false, true})
      for (std::int64_t queries : {64, 65, 80, 97, 130})
        for (std::int64_t keys : {64, 65, 79, 128, 257, 300, 520})
          for (const auto& [depth, width] : {std::pair{32, 32}, {33, 47}, {64, 64}, {80, 96}, {100, 130}}) {
            SCOPED_TRACE(testing::Message() << queries << " queries " << keys << " keys of " << depth << " > " << width
                                            << " causal " << causal << " threads " << threads);
            attention_case x(1, 1, queries, keys, depth, width, causal);
            x.run(pool);
            x.check();
            if (HasFatalFailure()) return;
          }
  }
}

TEST(attention_kernel, heads_and_blocks_of_queries) {
  kiln::thread_pool pool(2);
  attention_case grouped(6, 2, 70, 90, 40, 40), long_one(1, 1, 1100, 600, 36, 48), causal(2, 1, 600, 500, 64, 64, true);
  for (attention_case* x : {&grouped, &long_one, &causal}) x->run(pool), x->check();
}

TEST(attention_kernel, masks) {
  kiln::thread_pool pool(1);
  attention_case x(2, 1, 100, 300, 48, 64);
  x.mask = random_values<float>(100 * 300, 7);
  for (std::size_t i = 0; i < x.mask.size(); i += 3) x.mask[i] = -std::numeric_limits<float>::infinity();
  x.run(pool);
  x.check();
}

class attention_on_a_matrix_unit : public testing::Test {
 protected:
  void SetUp() override {
    if (!matrix_unit::available()) GTEST_SKIP() << "no matrix unit";
  }
};

TEST_F(attention_on_a_matrix_unit, takes_products_of_some_size) {
  kiln::thread_pool pool(1);
  attention_case x(1, 1, 100, 300, 64, 64);
  EXPECT_TRUE(attention_on_matrix_unit::serves(x.p));
  EXPECT_TRUE(x.run<attention_on_matrix_unit>(pool));
  x.check();
  const auto serves = [&](std::int64_t queries, std::int64_t keys, std::int64_t depth, std::int64_t width) {
    return attention_on_matrix_unit::serves(attention_case(1, 1, queries, keys, depth, width).p);
  };
  EXPECT_TRUE(serves(64, 64, 32, 32));
  EXPECT_FALSE(serves(63, 64, 32, 32) || serves(64, 63, 32, 32) || serves(64, 64, 31, 32) || serves(64, 64, 32, 31));
}

// Operands of one part: bf16.
void make_narrow(attention_case& x) {
  for (std::vector<float>* of : {&x.q, &x.k, &x.v})
    for (float& f : *of) f = static_cast<float>(kiln::bfloat16(f));
}

TEST_F(attention_on_a_matrix_unit, operands_of_one_part) {
  kiln::thread_pool pool(2);
  for (const std::int64_t keys : {64, 300}) {
    attention_case x(2, 1, 100, keys, 40, 50);
    make_narrow(x);
    EXPECT_TRUE(x.run<attention_on_matrix_unit>(pool));
    x.check();
    // the queries alone have more
    for (float& f : x.q) f += 0x1p-20F;
    EXPECT_TRUE(x.run<attention_on_matrix_unit>(pool));
    x.check();
  }
}

// Where operands, scores or sums are not finite, results are those of vectors.
TEST_F(attention_on_a_matrix_unit, values_that_are_not_finite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  kiln::thread_pool pool(1);
  for (const int where : {0, 1, 2, 3, 4, 5})
    for (const float value : {infinity, -infinity, std::nanf(""), 3e38F}) {
      SCOPED_TRACE(testing::Message() << value << " in operand " << where % 3 << (where > 2 ? ", all bf16" : ""));
      attention_case x(1, 1, 100, 300, 40, 50);
      if (where > 2) make_narrow(x);
      const bool overflows = value == 3e38F;
      if (overflows)
        for (float& f : x.q) f *= 1e3F;
      (where % 3 == 0 ? x.q : where % 3 == 1 ? x.k : x.v)[1000] = value;
      x.run<attention_in_vectors>(pool);
      const std::vector<float> expected = x.out;
      x.run(pool);
      for (std::size_t i = 0; i < expected.size(); ++i)
        if (expected[i] != expected[i])
          ASSERT_TRUE(std::isnan(x.out[i])) << i;
        else if (std::isinf(expected[i]))
          ASSERT_EQ(x.out[i], expected[i]) << i;
        else if (std::abs(expected[i]) > 1e30F)
          ASSERT_NEAR(x.out[i] / expected[i], 1, 1e-5) << i;
        else
          ASSERT_NEAR(x.out[i], expected[i], overflows ? 1e-3 : 2e-6) << i;  // errors are relative to the scores
    }
}

// Scores that are finite, while the products of their operands' first parts, rounded up, are not.
TEST_F(attention_on_a_matrix_unit, scores_whose_parts_overflow) {
  kiln::thread_pool pool(1);
  attention_case x(1, 1, 64, 64, 32, 32);
  std::fill(x.q.begin(), x.q.end(), 0.F), std::fill(x.k.begin(), x.k.end(), 0.F);
  x.p.scale = 2e-38F;
  for (std::int64_t i = 0; i < 64; ++i) {
    x.q[static_cast<std::size_t>(i * x.p.q.row)] = 1.8414e19F;
    x.k[static_cast<std::size_t>(i * x.p.k.row)] = -1.8414e19F;
  }
  x.run<attention_in_vectors>(pool);
  const std::vector<float> expected = x.out;
  EXPECT_FALSE(x.run<attention_on_matrix_unit>(pool));
  x.run(pool);
  EXPECT_EQ(x.out, expected);
}

// Which way products go depends on sizes alone.
TEST(attention_kernel, workers_change_no_bit) {
  for (const std::int64_t queries : {100, 512, 700}) {
    attention_case one(1, 1, queries, 300, 64, 64);
    kiln::thread_pool alone(1);
    one.run(alone);
    for (const unsigned threads : {2U, 3U, 8U}) {
      kiln::thread_pool pool(threads);
      attention_case x = one;
      x.run(pool);
      EXPECT_EQ(x.out, one.out) << queries << " queries by " << threads;
    }
  }
}

}  // namespace

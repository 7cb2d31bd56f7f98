// Attention over bytes, by each machine that this level has, against its definition in f64.
#include "kiln/kernel/int8/attention.hpp"

#include <gtest/gtest.h>

#include <random>

namespace kiln::kernels {
namespace {

struct attention_sizes {
  std::int64_t batch, queries, keys, depth, value_depth;
};
using numbers = std::vector<std::byte>;

double number(const numbers& from, std::int64_t at, bool is_signed) {
  const std::byte b = from[static_cast<std::size_t>(at)];
  return is_signed ? static_cast<std::int8_t>(b) : static_cast<std::uint8_t>(b);
}

// Scales are powers of two: the scores are the same in f32 and f64.
constexpr float score_scale = 1 / 4096.F, weight_scale = 1 / 256.F;
constexpr std::int32_t q_zero = 120, k_zero = 131, v_zero = 7;

template <class Machine> void expect_attention(thread_pool& pool, const attention_sizes& s, bool is_signed) {
  std::mt19937 engine(static_cast<unsigned>(s.keys));
  const auto random = [&](std::int64_t n) {
    numbers out(static_cast<std::size_t>(n));
    for (std::byte& b : out) b = static_cast<std::byte>(engine());
    return out;
  };
  const numbers q = random(s.batch * s.queries * s.depth), k = random(s.batch * s.keys * s.depth),
                v = random(s.batch * s.keys * s.value_depth);
  std::vector<float> mask(static_cast<std::size_t>(s.keys), 0.F),
      scale(static_cast<std::size_t>(s.keys) + 64, score_scale), one(static_cast<std::size_t>(s.value_depth) + 64, 1.F),
      made(static_cast<std::size_t>(s.batch * s.queries * s.value_depth), -1.F);
  if (s.keys > 1) mask[1] = -1e9F;
  std::vector<const std::byte*> at_q, at_k, at_v, at_mask;
  std::vector<std::byte*> results;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    at_q.push_back(q.data() + b * s.queries * s.depth);
    at_k.push_back(k.data() + b * s.keys * s.depth);
    at_v.push_back(v.data() + b * s.keys * s.value_depth);
    at_mask.push_back(reinterpret_cast<const std::byte*>(mask.data()));
    results.push_back(reinterpret_cast<std::byte*>(made.data() + b * s.queries * s.value_depth));
  }
  byte_attention p;
  p.scores = {s.batch, s.queries, s.keys,  s.depth, at_q.data(), at_k.data(), s.depth,
              1,       1,         s.depth, false,   false,       q_zero,      k_zero};
  const std::int32_t w_zero = is_signed ? -128 : 3;
  p.values = {s.batch,       s.queries, s.value_depth, s.keys, nullptr, at_v.data(), 0, 1,
              s.value_depth, 1,         is_signed,     true,   w_zero,  v_zero};
  p.score.scale = scale.data();
  p.score.addend_kind = requantization::kind::floats;
  p.masks = at_mask.data();
  p.weights.to = {weight_scale, 1 / weight_scale, is_signed ? 0.F : -3.F, is_signed ? 255.F : 252.F};
  p.weights.zero = w_zero;
  p.result.scale = one.data();
  p.result.result_row = s.value_depth;
  p.results = results.data();
  std::vector<std::int32_t> memory(static_cast<std::size_t>(byte_attention_scratch<Machine>(p, pool.size())) + 16, -1);
  auto* const aligned =
      reinterpret_cast<std::int32_t*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
  attend_to_bytes<Machine>(pool, p, aligned);

  for (std::int64_t row = 0; row < s.batch * s.queries; ++row) {
    const std::int64_t b = row / s.queries;
    std::vector<double> w(static_cast<std::size_t>(s.keys));
    for (std::int64_t j = 0; j < s.keys; ++j) {
      double sum = 0;
      for (std::int64_t c = 0; c < s.depth; ++c)
        sum += (number(q, row * s.depth + c, false) - q_zero) *
               (number(k, (b * s.keys + j) * s.depth + c, false) - k_zero);
      w[static_cast<std::size_t>(j)] = sum * score_scale + mask[static_cast<std::size_t>(j)];
    }
    const double most = *std::max_element(w.begin(), w.end());
    double total = 0;
    for (double& x : w) total += x = std::exp(x - most);
    double at_edges = 0;  // what weights next to the middle between two numbers may change
    for (double& x : w) {
      const double quotient = x / total / weight_scale;
      x = std::min(std::nearbyint(quotient), static_cast<double>(p.weights.to.high));
      at_edges += std::abs(std::abs(quotient - std::nearbyint(quotient)) - .5) < 1e-3 ? 136 : 0;
    }
    for (std::int64_t c = 0; c < s.value_depth; ++c) {
      double sum = 0;
      for (std::int64_t j = 0; j < s.keys; ++j)
        sum += w[static_cast<std::size_t>(j)] * (number(v, (b * s.keys + j) * s.value_depth + c, true) - v_zero);
      ASSERT_NEAR(made[static_cast<std::size_t>(row * s.value_depth + c)], sum, at_edges)
          << s.keys << " keys, row " << row << " column " << c;
    }
  }
}

template <class Machine> void expect_attentions(bool present) {
  if (!present) GTEST_SKIP() << "this processor has no such instruction";
  for (const unsigned threads : {1U, 3U}) {
    thread_pool pool(threads);
    for (const attention_sizes& s :
         {attention_sizes{1, 1, 1, 1, 1}, attention_sizes{2, 5, 7, 3, 9}, attention_sizes{3, 70, 33, 64, 65},
          attention_sizes{1, 61, 300, 20, 18}, attention_sizes{2, 9, 1500, 8, 70}})
      for (const bool is_signed : {false, true}) {
        expect_attention<Machine>(pool, s, is_signed);
        if (::testing::Test::HasFatalFailure()) return;
      }
  }
}

TEST(byte_attention_of_a_level, words) { expect_attentions<two_words>(true); }

TEST(byte_attention_of_a_level, bytes) {
  const bool longer = native_bytes == 64 || __builtin_cpu_supports("avx512vl");
  expect_attentions<four_bytes>(native_bytes > 16 && __builtin_cpu_supports("avx512vnni") && longer);
}

// A row that no key is left for has no softmax: its weights are bytes of NaN.
TEST(byte_attention_of_a_level, weights_of_nan_are_zero) {
  byte_attention p;
  p.weights.to = {weight_scale, 1 / weight_scale, -128.F, 127.F};
  p.weights.zero = 5;
  float scores[native_lanes<float> * 2];
  std::fill(std::begin(scores), std::end(scores), -std::numeric_limits<float>::infinity());
  std::int16_t made[native_lanes<float> * 2];
  soften_to_bytes<two_words>(made, scores, 3, p);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(made[i], 0);
}

}  // namespace
}  // namespace kiln::kernels

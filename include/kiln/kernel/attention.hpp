#pragma once
#include <limits>

#include "kiln/core/math.hpp"
#include "kiln/kernel/attention_problem.hpp"
#include "kiln/kernel/gemm.hpp"

namespace kiln::kernels {

/// Queries that one task handles at most: each packs the keys for itself.
inline constexpr std::int64_t attention_rows = 128;

/// One worker's part of an attention: a block of queries of one head against all keys, a block of keys at a time, with
/// a running softmax (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
class attention_block {
  using V = vec<float, native_lanes<float>>;
  static constexpr int lanes = native_lanes<float>;
  static constexpr std::int64_t panel = register_tile<float>::width;

 public:
  static std::int64_t scratch_size(const attention_problem& p) {
    return round_up(attention_rows * p.keys_at_once + attention_rows * round_up(p.value_depth, lanes) +
                        2 * attention_rows + panel * std::max(p.depth, p.keys_at_once) + 64,
                    16);
  }

  attention_block(const attention_problem& p, float* scratch) : p_(p) {
    scores_ = scratch;
    sums_ = scores_ + attention_rows * p.keys_at_once;
    sum_row_ = round_up(p.value_depth, lanes);
    greatest_ = sums_ + attention_rows * sum_row_;
    total_ = greatest_ + attention_rows;
    packed_ = total_ + attention_rows;
  }

  void run(std::int64_t b, std::int64_t h, std::int64_t row0, std::int64_t rows) {
    const std::int64_t g = h / (p_.heads / p_.kv_heads);
    const float* q = p_.q.at + b * p_.q.batch + h * p_.q.head + row0 * p_.q.row;
    const float* k = p_.k.at + b * p_.k.batch + g * p_.k.head;
    const float* v = p_.v.at + b * p_.v.batch + g * p_.v.head;
    for (std::int64_t r = 0; r < rows; ++r) {
      greatest_[r] = -std::numeric_limits<float>::infinity();
      total_[r] = 0;
      std::fill_n(sums_ + r * sum_row_, sum_row_, 0.0F);
    }
    const std::int64_t seen = p_.causal ? std::min(p_.keys, row0 + rows + p_.keys - p_.queries) : p_.keys;
    for (std::int64_t j = 0; j < seen; j += p_.keys_at_once) {
      const std::int64_t keys = std::min(p_.keys_at_once, seen - j);
      score(q, rows, k + j * p_.k.row, keys);
      for (std::int64_t r = 0; r < rows; ++r) soften(b, h, row0 + r, r, j, keys);
      accumulate(rows, v + j * p_.v.row, keys);
    }
    float* out = p_.out + b * p_.out_batch + h * p_.out_head + row0 * p_.out_row;
    for (std::int64_t r = 0; r < rows; ++r) {
      const float factor = total_[r] > 0 ? 1 / total_[r] : total_[r];  // a row that sees nothing is zero; NaN stays
      const V scale = broadcast<V>(factor);
      for (std::int64_t c = 0; c < p_.value_depth; c += lanes)
        store_n(out + r * p_.out_row + c, load<V>(sums_ + r * sum_row_ + c) * scale,
                static_cast<int>(std::min<std::int64_t>(lanes, p_.value_depth - c)));
    }
  }

 private:
  // scores[rows, keys] = q * k^T
  void score(const float* q, std::int64_t rows, const float* k, std::int64_t keys) {
    if (rows < 4) {
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t j = 0; j < keys; ++j)
          scores_[r * p_.keys_at_once + j] = inner(q + r * p_.q.row, k + j * p_.k.row);
      return;
    }
    for (std::int64_t col = 0; col < keys; col += panel) {
      const std::int64_t cols = std::min(panel, keys - col), width = round_up(cols, lanes);
      pack_panel(packed_, width, k + col * p_.k.row, std::ptrdiff_t{1}, p_.k.row, p_.depth, cols);
      multiply_panel<float>(p_.depth, q, p_.q.row, rows, linear_step{1}, packed_, width, scores_ + col, p_.keys_at_once,
                            static_cast<int>(cols), false, {}, [](std::int64_t, int) {});
    }
  }

  float inner(const float* a, const float* b) const {
    V sum[2] = {};
    std::int64_t i = 0;
    for (; i + 2 * lanes <= p_.depth; i += 2 * lanes) {
      sum[0] = fma(load<V>(a + i), load<V>(b + i), sum[0]);
      sum[1] = fma(load<V>(a + i + lanes), load<V>(b + i + lanes), sum[1]);
    }
    for (; i < p_.depth; i += lanes) {
      const int n = static_cast<int>(std::min<std::int64_t>(lanes, p_.depth - i));
      sum[0] = fma(load_n<V>(a + i, n), load_n<V>(b + i, n), sum[0]);
    }
    return reduce_add(sum[0] + sum[1]);
  }

  // Scales and masks a row's scores, raises its running maximum and turns the scores into weights.
  void soften(std::int64_t b, std::int64_t h, std::int64_t query, std::int64_t r, std::int64_t j, std::int64_t keys) {
    constexpr float never = -std::numeric_limits<float>::infinity();
    float* s = scores_ + r * p_.keys_at_once;
    const std::ptrdiff_t mask = b * p_.mask_batch + h * p_.mask_head + query * p_.mask_row + j * p_.mask_col;
    std::int64_t visible = keys;
    if (p_.causal) visible = std::clamp<std::int64_t>(query + p_.keys - p_.queries - j + 1, 0, keys);
    // Without a mask the scale waits for the exponential; a negative one would turn the order.
    const bool masked = p_.add_mask || p_.keep_mask || !(p_.scale > 0);
    const V scale = broadcast<V>(masked ? 1.0F : p_.scale);
    if (masked) add_mask(s, mask, keys);
    for (std::int64_t i = visible; i < round_up(keys, 2 * lanes); ++i) s[i] = never;

    V top[2] = {broadcast<V>(never), broadcast<V>(never)};
    for (std::int64_t i = 0; i < keys; i += 2 * lanes) {
      top[0] = max(top[0], load<V>(s + i));
      top[1] = max(top[1], load<V>(s + i + lanes));
    }
    const float most = reduce_max(max(top[0], top[1]));
    const float greatest = max(greatest_[r], masked ? most : most * p_.scale);
    // while nothing is visible there is nothing to subtract: exp(-inf - 0) = 0
    const float base = greatest == never ? 0.0F : greatest;
    const V shift = broadcast<V>(-base);
    V sums[2] = {};
    for (std::int64_t i = 0; i < keys; i += 2 * lanes) {
      const V w = exp(multiply_add(load<V>(s + i), scale, shift));
      const V x = exp(multiply_add(load<V>(s + i + lanes), scale, shift));
      store(s + i, w);
      store(s + i + lanes, x);
      sums[0] += w;
      sums[1] += x;
    }
    const V sum = sums[0] + sums[1];
    if (j != 0 && greatest != greatest_[r]) {
      const float shrink = kiln::exp(greatest_[r] - base);
      total_[r] *= shrink;
      const V factor = broadcast<V>(shrink);
      for (std::int64_t c = 0; c < sum_row_; c += lanes)
        store(sums_ + r * sum_row_ + c, load<V>(sums_ + r * sum_row_ + c) * factor);
    }
    total_[r] += reduce_add(sum);
    greatest_[r] = greatest;
  }

  // Scales a row's scores and masks them.
  void add_mask(float* s, std::ptrdiff_t mask, std::int64_t keys) const {
    constexpr float never = -std::numeric_limits<float>::infinity();
    const V scale = broadcast<V>(p_.scale);
    if (p_.add_mask && p_.mask_col == 1) {
      for (std::int64_t i = 0; i < keys; i += lanes) {
        const int n = static_cast<int>(std::min<std::int64_t>(lanes, keys - i));
        store(s + i, load<V>(s + i) * scale + load_n<V>(p_.add_mask + mask + i, n));
      }
      return;
    }
    for (std::int64_t i = 0; i < keys; i += lanes) store(s + i, load<V>(s + i) * scale);
    for (std::int64_t i = 0; i < keys && p_.add_mask; ++i) s[i] += p_.add_mask[mask + i * p_.mask_col];
    for (std::int64_t i = 0; i < keys && p_.keep_mask && !p_.add_mask; ++i)
      if (!p_.keep_mask[mask + i * p_.mask_col]) s[i] = never;
  }

  // sums[rows, value_depth] += weights * v
  void accumulate(std::int64_t rows, const float* v, std::int64_t keys) {
    for (std::int64_t col = 0; col < p_.value_depth; col += panel) {
      const std::int64_t cols = std::min(panel, p_.value_depth - col), width = round_up(cols, lanes);
      const float* b = v + col;
      std::ptrdiff_t step = p_.v.row;
      if (cols != width) {
        pack_panel(packed_, width, b, p_.v.row, std::ptrdiff_t{1}, keys, cols);
        b = packed_;
        step = width;
      }
      multiply_panel<float>(keys, scores_, p_.keys_at_once, rows, linear_step{1}, b, step, sums_ + col, sum_row_,
                            static_cast<int>(cols), true, {}, [](std::int64_t, int) {});
    }
  }

  const attention_problem& p_;
  float *scores_, *sums_, *greatest_, *total_, *packed_;
  std::int64_t sum_row_ = 0;
};

/// Floats of scratch for `workers` workers.
inline std::int64_t attention_scratch_size(const attention_problem& p, unsigned workers) {
  return attention_block::scratch_size(p) * workers;
}

/// Runs an attention; tasks are blocks of queries of one head.
inline void attention(thread_pool& pool, const attention_problem& p, float* scratch) {
  // shorter blocks where there would be too few of them to share
  const std::int64_t long_blocks = p.batch * p.heads * ceil_div(p.queries, attention_rows);
  const std::int64_t most = pool.size() == 1 || long_blocks >= 4 * static_cast<std::int64_t>(pool.size())
                                ? attention_rows
                                : attention_rows / 2;
  const std::int64_t blocks = ceil_div(p.queries, most);
  const std::int64_t each = attention_block::scratch_size(p);
  pool.parallel_for(p.batch * p.heads * blocks, [&](std::int64_t task, unsigned worker) {
    const std::int64_t row0 = task % blocks * most, head = task / blocks;
    attention_block block(p, scratch + static_cast<std::int64_t>(worker) * each);
    block.run(head / p.heads, head % p.heads, row0, std::min(most, p.queries - row0));
  });
}

}  // namespace kiln::kernels

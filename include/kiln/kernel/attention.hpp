#pragma once
#include <limits>

#include "kiln/core/math.hpp"
#include "kiln/kernel/attention_problem.hpp"
#include "kiln/kernel/gemm.hpp"
#include "kiln/kernel/sum_rows.hpp"

namespace kiln::kernels {

/// Queries that one task handles at most: their sums stay in the second-level cache.
inline constexpr std::int64_t attention_rows = 512;

/// One worker's part of an attention: a block of queries of one head against all keys, a block of keys at a time, with
/// a running softmax (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). A group of queries
/// goes through all steps of a block of keys before the next does, so that its scores never leave the first-level
/// cache.
class attention_block {
  using V = vec<float, native_lanes<float>>;
  static constexpr int lanes = native_lanes<float>;
  static constexpr int group = 2 * register_tile<float>::rows;
  static constexpr std::int64_t panel = register_tile<float>::width;

 public:
  static std::int64_t scratch_size(const attention_problem& p, std::int64_t rows) {
    const std::int64_t width = round_up(p.value_depth, lanes);
    return round_up((group + p.depth + width) * p.keys_at_once + rows * (width + 2), 16);
  }

  attention_block(const attention_problem& p, std::int64_t rows, float* scratch) : p_(p) {
    scores_ = scratch;
    packed_keys_ = scores_ + group * p.keys_at_once;
    packed_values_ = packed_keys_ + p.depth * p.keys_at_once;
    sum_row_ = round_up(p.value_depth, lanes);
    sums_ = packed_values_ + sum_row_ * p.keys_at_once;
    greatest_ = sums_ + rows * sum_row_;
    total_ = greatest_ + rows;
  }

  void run(std::int64_t b, std::int64_t h, std::int64_t row0, std::int64_t rows) {
    const std::int64_t g = h / (p_.heads / p_.kv_heads);
    const float* q = p_.q.at + b * p_.q.batch + h * p_.q.head + row0 * p_.q.row;
    const float* k = p_.k.at + b * p_.k.batch + g * p_.k.head;
    const float* v = p_.v.at + b * p_.v.batch + g * p_.v.head;
    float* out = p_.out + b * p_.out_batch + h * p_.out_head + row0 * p_.out_row;
    std::fill_n(greatest_, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(total_, rows, 0.0F);
    const auto seen = [&](std::int64_t end) {  // by the queries before `end`
      return p_.causal ? std::clamp<std::int64_t>(row0 + end + p_.keys - p_.queries, 0, p_.keys) : p_.keys;
    };
    const std::int64_t all = seen(rows);
    std::int64_t j = 0;
    do {
      const std::int64_t keys = std::min(p_.keys_at_once, all - j);
      const bool last = j + keys == all;
      pack(k + j * p_.k.row, v + j * p_.v.row, keys, rows);
      for (std::int64_t first = 0; first < rows; first += group) {
        const std::int64_t count = std::min<std::int64_t>(group, rows - first);
        const std::int64_t visible = std::min(keys, seen(first + count) - j);
        if (visible > 0) {
          score(q + first * p_.q.row, count, k + j * p_.k.row, visible);
          soften(b, h, row0, first, count, j, visible);
          accumulate(first, count, v + j * p_.v.row, visible, j != 0);
        } else if (j == 0) {
          std::fill_n(sums_ + first * sum_row_, count * sum_row_, 0.0F);
        }
        for (std::int64_t r = first; last && r < first + count; ++r) finish(r, out + r * p_.out_row);
      }
      j += keys;
    } while (j < all);
  }

 private:
  // Brings a block of keys and values into panels. Few queries read them where they lie, save values of columns that
  // fill no vector.
  void pack(const float* k, const float* v, std::int64_t keys, std::int64_t rows) {
    keys_ = keys;
    packs_keys_ = rows > 4;
    packs_values_ = rows >= 64;
    for (std::int64_t col = 0; packs_keys_ && col < keys; col += panel) {
      const std::int64_t cols = std::min(panel, keys - col);
      pack_panel(packed_keys_ + col * p_.depth, round_up(cols, lanes), k + col * p_.k.row, std::ptrdiff_t{1}, p_.k.row,
                 p_.depth, cols);
    }
    for (std::int64_t col = 0; col < p_.value_depth; col += panel) {
      const std::int64_t cols = std::min(panel, p_.value_depth - col), width = round_up(cols, lanes);
      if (packs_values_ || cols != width)
        pack_panel(packed_values_ + col * keys, width, v + col, p_.v.row, std::ptrdiff_t{1}, keys, cols);
    }
  }

  // scores[rows, keys] = q * k^T
  void score(const float* q, std::int64_t rows, const float* k, std::int64_t keys) {
    if (!packs_keys_) {
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t j = 0; j < keys; j += lanes)
          store(scores_ + r * p_.keys_at_once + j, inner(q + r * p_.q.row, k + j * p_.k.row, keys - j));
      return;
    }
    for (std::int64_t col = 0; col < keys; col += panel) {
      const std::int64_t cols = std::min(panel, keys - col);
      // the panel may be wider than the keys that these rows see
      const std::int64_t width = round_up(std::min(panel, keys_ - col), lanes);
      multiply_panel<float>(p_.depth, q, p_.q.row, rows, linear_step{1}, packed_keys_ + col * p_.depth, width,
                            scores_ + col, p_.keys_at_once, static_cast<int>(cols), false, {},
                            [](std::int64_t, int) {});
    }
  }

  // The inner products of a query with one key a lane; beyond `keys` they are anything.
  V inner(const float* q, const float* k, std::int64_t keys) const {
    const float* key[lanes];
    V sum[lanes] = {};
    for (int i = 0; i < lanes; ++i) key[i] = k + std::min<std::int64_t>(i, keys - 1) * p_.k.row;
    std::int64_t c = 0;
    for (; c + lanes <= p_.depth; c += lanes) {
      const V part = load<V>(q + c);
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) sum[i] = multiply_add(part, load<V>(key[i] + c), sum[i]);
    }
    if (c < p_.depth) {
      const int rest = static_cast<int>(p_.depth - c);
      const V part = load_n<V>(q + c, rest);
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) sum[i] = multiply_add(part, load_n<V>(key[i] + c, rest), sum[i]);
    }
    return sum_rows<lanes>(sum);
  }

  // Scales and masks the scores of rows [first, first + rows), raises their running maximums and turns the scores into
  // weights. All rows take the first step before one takes the second, so that none waits for what its own left.
  void soften(std::int64_t b, std::int64_t h, std::int64_t row0, std::int64_t first, std::int64_t rows, std::int64_t j,
              std::int64_t keys) {
    constexpr float never = -std::numeric_limits<float>::infinity();
    // Without a mask the scale waits for the exponential; a negative one would turn the order.
    const bool masked = p_.add_mask || p_.keep_mask || !(p_.scale > 0);
    float most[group];
    for (std::int64_t r = 0; r < rows; ++r) {
      float* s = scores_ + r * p_.keys_at_once;
      const std::int64_t query = row0 + first + r;
      const std::ptrdiff_t mask = b * p_.mask_batch + h * p_.mask_head + query * p_.mask_row + j * p_.mask_col;
      std::int64_t visible = keys;
      if (p_.causal) visible = std::clamp<std::int64_t>(query + p_.keys - p_.queries - j + 1, 0, keys);
      if (masked) add_mask(s, mask, keys);
      for (std::int64_t i = visible; i < round_up(keys, 2 * lanes); ++i) s[i] = never;
      V top[2] = {broadcast<V>(never), broadcast<V>(never)};
      for (std::int64_t i = 0; i < keys; i += 2 * lanes) {  // NaN needn't stay: its weight will be one
        top[0] = elementary::greater(top[0], load<V>(s + i));
        top[1] = elementary::greater(top[1], load<V>(s + i + lanes));
      }
      most[r] = reduce_max(elementary::greater(top[0], top[1]));
    }
    const V scale = broadcast<V>(masked ? 1.0F : p_.scale);
    for (std::int64_t r = 0; r < rows; ++r) {
      float* s = scores_ + r * p_.keys_at_once;
      float &greatest = greatest_[first + r], &total = total_[first + r];
      const float above = max(greatest, masked ? most[r] : most[r] * p_.scale);
      // while nothing is visible there is nothing to subtract: exp(-inf - 0) = 0
      const float base = above == never ? 0.0F : above;
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
      if (j != 0 && above != greatest) {
        const float shrink = kiln::exp(greatest - base);
        total *= shrink;
        float* const sum = sums_ + (first + r) * sum_row_;
        for (std::int64_t c = 0; c < sum_row_; c += lanes) store(sum + c, load<V>(sum + c) * broadcast<V>(shrink));
      }
      total += reduce_add(sums[0] + sums[1]);
      greatest = above;
    }
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

  // sums[first .. first + rows, value_depth] (+)= weights * v
  void accumulate(std::int64_t first, std::int64_t rows, const float* v, std::int64_t keys, bool adds) {
    for (std::int64_t col = 0; col < p_.value_depth; col += panel) {
      const std::int64_t cols = std::min(panel, p_.value_depth - col), width = round_up(cols, lanes);
      const bool packed = packs_values_ || cols != width;
      multiply_panel<float>(keys, scores_, p_.keys_at_once, rows, linear_step{1},
                            packed ? packed_values_ + col * keys_ : v + col, packed ? width : p_.v.row,
                            sums_ + first * sum_row_ + col, sum_row_, static_cast<int>(cols), adds, {},
                            [](std::int64_t, int) {});
    }
  }

  void finish(std::int64_t r, float* out) const {
    const float factor = total_[r] > 0 ? 1 / total_[r] : total_[r];  // a row that sees nothing is zero; NaN stays
    const V scale = broadcast<V>(factor);
    for (std::int64_t c = 0; c < p_.value_depth; c += lanes)
      store_n(out + c, load<V>(sums_ + r * sum_row_ + c) * scale,
              static_cast<int>(std::min<std::int64_t>(lanes, p_.value_depth - c)));
  }

  const attention_problem& p_;
  float *scores_, *packed_keys_, *packed_values_, *sums_, *greatest_, *total_;
  std::int64_t sum_row_ = 0, keys_ = 0;
  bool packs_keys_ = false, packs_values_ = false;
};

/// Queries of a task: a head's, unless there are few heads to share.
inline std::int64_t attention_task_rows(const attention_problem& p, unsigned workers) {
  constexpr std::int64_t least = 48;  // each task packs the keys for itself
  const std::int64_t heads = std::max<std::int64_t>(1, p.batch * p.heads);
  const std::int64_t wanted = workers == 1 ? 1 : ceil_div(4 * static_cast<std::int64_t>(workers), heads);
  const std::int64_t blocks = std::max(ceil_div(p.queries, attention_rows), std::min(p.queries / least, wanted));
  return ceil_div(std::max<std::int64_t>(1, p.queries), std::max<std::int64_t>(1, blocks));
}

/// Floats of scratch for `workers` workers.
inline std::int64_t attention_scratch_size(const attention_problem& p, unsigned workers) {
  return attention_block::scratch_size(p, attention_task_rows(p, workers)) * workers;
}

/// Runs an attention; tasks are blocks of queries of one head.
inline void attention(thread_pool& pool, const attention_problem& p, float* scratch) {
  const std::int64_t most = attention_task_rows(p, pool.size()), blocks = ceil_div(p.queries, most);
  const std::int64_t each = attention_block::scratch_size(p, most);
  pool.parallel_for(p.batch * p.heads * blocks, [&](std::int64_t task, unsigned worker) {
    const std::int64_t row0 = task % blocks * most, head = task / blocks;
    attention_block block(p, most, scratch + static_cast<std::int64_t>(worker) * each);
    block.run(head / p.heads, head % p.heads, row0, std::min(most, p.queries - row0));
  });
}

}  // namespace kiln::kernels

#pragma once
#include <limits>

#include "kiln/core/math.hpp"
#include "kiln/kernel/attention/products.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::kernels {

/// The most queries of a task: their sums stay in L2.
inline constexpr std::int64_t attention_rows = 512;

/// One worker's part of an attention: a block of queries of one head against all keys, a block of keys at a time, with
/// a running softmax (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). A group of queries
/// completes all steps of a block of keys before the next group begins, so that its scores never leave L1. `Products`
/// is a class of `attention/products.hpp`; `Problem` an `attention_problem`, or one whose keys and values come in pages
/// (attention/paged.hpp).
template <class Products, class Problem = attention_problem> class attention_block {
  using V = vec<float, native_lanes<float>>;
  using stored = typename Products::stored;
  using piece = typename Products::piece;
  static constexpr bool paged = requires(Problem p) { p.blocks; };
  static constexpr int lanes = native_lanes<float>;
  static constexpr int group = Products::group, buffers = Products::ahead ? 2 : 1;

 public:
  static std::int64_t scratch_size(const Problem& p, std::int64_t rows) {
    return own_size(p, rows) + Products::scratch_size(p);
  }

  /// `scratch` is aligned to 64 bytes.
  attention_block(const Problem& p, std::int64_t rows, float* scratch)
      : p_(p),
        products_(p, scratch + own_size(p, rows)),
        keys_at_once_(Products::keys_at_once(p)),
        sum_row_(round_up(p.value_depth, lanes)),
        scores_(scratch),
        sums_(scores_ + buffers * group * keys_at_once_),
        greatest_(sums_ + round_up(rows, group) * sum_row_),
        total_(greatest_ + rows),
        scaled_(total_ + rows) {}

  /// Whether the result is valid: inexact products met only finite values.
  bool run(std::int64_t b, std::int64_t h, std::int64_t row0, std::int64_t rows) {
    const std::int64_t g = h / (p_.heads / p_.kv_heads);
    const float* q = static_cast<const float*>(p_.q.at) + b * p_.q.batch + h * p_.q.head + row0 * p_.q.row;
    keys_ = static_cast<const stored*>(p_.k.at) + b * p_.k.batch + g * p_.k.head;
    values_ = static_cast<const stored*>(p_.v.at) + b * p_.v.batch + g * p_.v.head;
    const std::ptrdiff_t q_row = p_.k_scale.at ? p_.depth : p_.q.row;
    if (p_.k_scale.at) q = scaled(q, rows, g);
    float* out = p_.out + b * p_.out_batch + h * p_.out_head + row0 * p_.out_row;
    begin_rows(rows);
    const auto seen = [&](std::int64_t end) {  // by the queries before `end`
      return p_.causal ? std::clamp<std::int64_t>(row0 + end + p_.keys - p_.queries, 0, p_.keys) : p_.keys;
    };
    const std::int64_t all = seen(rows), begin = first_key(row0);
    std::int64_t j = begin;
    finite_ = true;
    do {
      const std::int64_t keys = std::min(keys_at_once_, all - j);
      const bool last = j + keys == all;
      fetch(g, j, keys);
      for_each_piece(g, j, keys, [&](const piece& part) { products_.take(part, rows); });
      const auto visible = [&](std::int64_t first) { return std::min(keys, seen(std::min(rows, first + group)) - j); };
      const auto accumulate = [&](std::int64_t first) {
        const std::int64_t count = std::min<std::int64_t>(group, rows - first);
        float* const sums = sums_ + first * sum_row_;
        const std::int64_t seen_keys = visible(first);
        for_each_piece(g, j, keys, [&](const piece& part) {
          if (const std::int64_t n = std::min(part.keys, seen_keys - part.from); n > 0)
            products_.accumulate(scores(first), count, part, n, sums, sum_row_, j != begin || part.from != 0);
        });
        if (seen_keys <= 0 && j == begin) std::fill_n(sums, count * sum_row_, 0.0F);
        if (!last) return;
        check(sums, count * sum_row_);
        for (std::int64_t r = first; r < first + count; ++r) normalize(r, g, out + r * p_.out_row);
      };
      for (std::int64_t first = 0; first < rows; first += group) {
        const std::int64_t count = std::min<std::int64_t>(group, rows - first);
        const std::int64_t seen_keys = visible(first);
        for_each_piece(g, j, keys, [&](const piece& part) {
          const std::int64_t n = std::min(part.keys, seen_keys - part.from);
          if (n > 0) products_.score(scores(first), q + first * q_row, q_row, count, part, n);
        });
        if (Products::ahead && first > 0) accumulate(first - group);
        if (seen_keys > 0) {
          scale_pages(g, first, count, j, seen_keys, false);
          soften(b, h, row0, first, count, j, seen_keys, j == begin);
          scale_pages(g, first, count, j, seen_keys, true);
          products_.weigh(scores(first), count, seen_keys);
        }
        if (!Products::ahead || first + group >= rows) accumulate(first);
      }
      j += keys;
    } while (j < all);
    return finite_;
  }

 private:
  // Where the running softmax begins: with nothing, or with sinks.
  void begin_rows(std::int64_t rows) {
    std::fill_n(greatest_, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(total_, rows, 0.0F);
    if constexpr (paged) {
      if (!p_.sinks) return;
      for (std::int64_t r = 0; r < rows; ++r) greatest_[r] = p_.sinks[r * p_.sink_row], total_[r] = 1;
    }
  }
  // Keys before the window of a query.
  std::int64_t hidden_before(std::int64_t query) const {
    if constexpr (paged) {
      const std::int64_t own = p_.causal ? query + p_.keys - p_.queries : p_.keys - 1;
      return p_.window > 0 ? std::max<std::int64_t>(0, own - p_.window + 1) : 0;
    }
    return 0;
  }
  // The first key that query `row0` or a later one sees, or an earlier one in its page.
  std::int64_t first_key(std::int64_t row0) const {
    if constexpr (paged) return hidden_before(row0) / p_.block * p_.block;
    return 0;
  }
  void fetch([[maybe_unused]] std::int64_t g, [[maybe_unused]] std::int64_t j, [[maybe_unused]] std::int64_t keys) {
    if constexpr (paged)
      if (p_.gathered) p_.gather(g, j, keys);
  }
  // Calls `visit` for the pieces of keys [j, j + keys) of head g.
  template <class Visit>
  void for_each_piece([[maybe_unused]] std::int64_t g, std::int64_t j, std::int64_t keys, Visit&& visit) const {
    if constexpr (paged) {
      if (!p_.gathered) {
        for (std::int64_t from = 0; from < keys; from += p_.block)
          visit(p_.template piece_at<stored>(g, j + from, from, std::min(p_.block, keys - from)));
        return;
      }
      const auto* const k = reinterpret_cast<const stored*>(p_.gathered);
      visit(piece{k, k + p_.depth * p_.keys_at_once, 0, keys});
    } else {
      visit(piece{keys_ + j * p_.k.row, values_ + j * p_.v.row, 0, keys});
    }
  }
  // Multiplies the scores of a group by the scales of the keys, or the weights by those of the values.
  void scale_pages([[maybe_unused]] std::int64_t g, [[maybe_unused]] std::int64_t first,
                   [[maybe_unused]] std::int64_t rows, [[maybe_unused]] std::int64_t j,
                   [[maybe_unused]] std::int64_t keys, [[maybe_unused]] bool of_values) const {
    if constexpr (paged) {
      if (p_.gathered || !p_.has_scales()) return;
      for (std::int64_t from = 0; from < keys; from += p_.block) {
        const float* const by = p_.scales_at(g, j + from, of_values);
        for (std::int64_t r = 0; r < rows; ++r) {
          float* const s = scores(first) + r * keys_at_once_ + from;
          for (std::int64_t i = 0; i < std::min(p_.block, keys - from); i += lanes)
            store(s + i, load<V>(s + i) * load<V>(by + i));
        }
      }
    }
  }
  static std::int64_t own_size(const Problem& p, std::int64_t rows) {
    const std::int64_t sums = round_up(rows, group) * round_up(p.value_depth, lanes);
    const std::int64_t scaled = p.k_scale.at ? rows * p.depth : 0;
    return round_up(buffers * group * Products::keys_at_once(p) + sums + 2 * rows + scaled, 16);
  }
  // The queries times the scales of the keys of head g, which are left out of the scores then.
  const float* scaled(const float* q, std::int64_t rows, std::int64_t g) const {
    const float* const by = p_.k_scale.at + g * p_.k_scale.head;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < p_.depth; ++c)
        scaled_[r * p_.depth + c] = q[r * p_.q.row + c] * by[c * p_.k_scale.step];
    return scaled_;
  }
  // Scores of the group whose first query is `first`.
  float* scores(std::int64_t first) const { return scores_ + (first / group % buffers) * group * keys_at_once_; }

  // Split floats represent no infinities, and parts of finite values may overflow: scores and sums show it.
  void check(const float* at, std::int64_t count) {
    if (Products::exact) return;
    V sum[2] = {};  // infinities and NaN times zero are NaN
    for (std::int64_t i = 0; i < count; i += lanes)
      sum[i / lanes & 1] = multiply_add(load<V>(at + i), V{}, sum[i / lanes & 1]);
    finite_ = finite_ && reduce_add(sum[0] + sum[1]) == 0;
  }

  // Scales and masks the scores of rows [first, first + rows), raises their running maximums and turns the scores into
  // weights. All rows take the first step before one takes the second, so that no row waits for its own results.
  void soften(std::int64_t b, std::int64_t h, std::int64_t row0, std::int64_t first, std::int64_t rows, std::int64_t j,
              std::int64_t keys, bool begins) {
    constexpr float never = -std::numeric_limits<float>::infinity();
    // Without a mask the scale is applied in the exponential, unless it is negative, which would reverse the order.
    bool masked = p_.add_mask || p_.keep_mask || !(p_.scale > 0);
    if constexpr (paged) masked = masked || p_.softcap > 0;
    float most[group];
    for (std::int64_t r = 0; r < rows; ++r) {
      float* s = scores(first) + r * keys_at_once_;
      const std::int64_t query = row0 + first + r;
      const std::ptrdiff_t mask = b * p_.mask_batch + h * p_.mask_head + query * p_.mask_row + j * p_.mask_col;
      std::int64_t visible = keys;
      if (p_.causal) visible = std::clamp<std::int64_t>(query + p_.keys - p_.queries - j + 1, 0, keys);
      check(s, keys);
      if (masked) add_mask(s, mask, keys);
      for (std::int64_t i = visible; i < round_up(keys, 2 * lanes); ++i) s[i] = never;
      for (std::int64_t i = std::min(keys, hidden_before(query) - j); i-- > 0;) s[i] = never;
      V top[2] = {broadcast<V>(never), broadcast<V>(never)};
      for (std::int64_t i = 0; i < keys; i += 2 * lanes) {  // NaN may be lost here: its weight will be NaN
        top[0] = elementary::greater(top[0], load<V>(s + i));
        top[1] = elementary::greater(top[1], load<V>(s + i + lanes));
      }
      most[r] = reduce_max(elementary::greater(top[0], top[1]));
    }
    const V scale = broadcast<V>(masked ? 1.0F : p_.scale);
    for (std::int64_t r = 0; r < rows; ++r) {
      float* s = scores(first) + r * keys_at_once_;
      float &greatest = greatest_[first + r], &total = total_[first + r];
      const float above = max(greatest, masked ? most[r] : most[r] * p_.scale);
      // while no key is visible there is nothing to subtract: exp(-inf - 0) = 0
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
      if (above != greatest && (paged || !begins)) {
        const float shrink = kiln::exp(greatest - base);
        total *= shrink;
        float* const sum = sums_ + (first + r) * sum_row_;
        for (std::int64_t c = 0; c < sum_row_ && !begins; c += lanes)
          store(sum + c, load<V>(sum + c) * broadcast<V>(shrink));
      }
      total += reduce_add(sums[0] + sums[1]);
      greatest = above;
    }
  }

  // Scales a row's scores and masks them.
  void add_mask(float* s, std::ptrdiff_t mask, std::int64_t keys) const {
    constexpr float never = -std::numeric_limits<float>::infinity();
    const V scale = broadcast<V>(p_.scale);
    if constexpr (paged) {
      const V by = broadcast<V>(p_.scale / p_.softcap), cap = broadcast<V>(p_.softcap);
      for (std::int64_t i = 0; i < keys && p_.softcap > 0; i += lanes) store(s + i, tanh(load<V>(s + i) * by) * cap);
      if (p_.softcap > 0) return;
    }
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

  // Writes row r of the result: its sums over their total, times the scales of the values of head g.
  void normalize(std::int64_t r, std::int64_t g, float* out) const {
    const float factor = total_[r] > 0 ? 1 / total_[r] : total_[r];  // a row without visible keys is zero; NaN stays
    const V scale = broadcast<V>(factor);
    const float* const by = p_.v_scale.at ? p_.v_scale.at + g * p_.v_scale.head : nullptr;
    for (std::int64_t c = 0; c < p_.value_depth; c += lanes) {
      const int n = static_cast<int>(std::min<std::int64_t>(lanes, p_.value_depth - c));
      V x = load<V>(sums_ + r * sum_row_ + c) * scale;
      if (by) x *= p_.v_scale.step ? load_n<V>(by + c, n) : broadcast<V>(*by);
      store_n(out + c, x, n);
    }
  }

  const Problem& p_;
  Products products_;
  const stored *keys_ = nullptr, *values_ = nullptr;  // of a head, where they are not in pages
  std::int64_t keys_at_once_, sum_row_;
  float *scores_, *sums_, *greatest_, *total_, *scaled_;
  bool finite_ = true;  // whether all that `check` has seen in a run is
};

/// Queries of a task: a head's, unless there are few heads to share.
inline std::int64_t attention_task_rows(const attention_problem& p, unsigned workers) {
  // Each task packs the keys for itself.
  const std::int64_t least = attention_on_matrix_unit::serves(p) ? attention_on_matrix_unit::least_rows : 48;
  const std::int64_t heads = std::max<std::int64_t>(1, p.batch * p.heads);
  const std::int64_t wanted = workers == 1 ? 1 : ceil_div(4 * static_cast<std::int64_t>(workers), heads);
  const std::int64_t blocks = std::max(ceil_div(p.queries, attention_rows), std::min(p.queries / least, wanted));
  return ceil_div(std::max<std::int64_t>(1, p.queries), std::max<std::int64_t>(1, blocks));
}

/// Where each head has one query, those of the heads that read the same keys are rows that meet these together, unless
/// that would leave workers idle.
inline attention_problem with_grouped_heads(attention_problem p, unsigned workers) {
  if (p.queries != 1 || p.heads == p.kv_heads || p.batch * p.kv_heads < static_cast<std::int64_t>(workers)) return p;
  const std::int64_t group = p.heads / p.kv_heads;
  p.queries = group, p.heads = p.kv_heads;
  p.q.row = p.q.head, p.q.head *= group;
  p.out_row = p.out_head, p.out_head *= group;
  p.mask_row = p.mask_head, p.mask_head *= group;
  p.causal = false;  // the last query sees all keys
  return p;
}

/// Calls `run` with the products in vectors of an attention whose keys and values are stored in that way.
template <class Run> auto with_stored_products(dtype stored, Run&& run) {
  switch (stored) {
    case dtype::f16: return run(std::in_place_type<attention_of_stored<half>>);
    case dtype::bf16: return run(std::in_place_type<attention_of_stored<bfloat16>>);
    case dtype::i8: return run(std::in_place_type<attention_of_stored<std::int8_t>>);
    case dtype::f8e4m3fn: return run(std::in_place_type<attention_of_stored<float8_e4m3fn>>);
    case dtype::f8e5m2: return run(std::in_place_type<attention_of_stored<float8_e5m2>>);
    default: return run(std::in_place_type<attention_in_vectors>);
  }
}

/// Floats of scratch for each worker.
inline std::int64_t attention_task_scratch(const attention_problem& p, std::int64_t rows) {
  const std::int64_t in_vectors = with_stored_products(p.stored, [&]<class Products>(std::in_place_type_t<Products>) {
    return attention_block<Products>::scratch_size(p, rows);
  });
  if (!attention_on_matrix_unit::serves(p)) return in_vectors;
  return std::max(in_vectors, attention_block<attention_on_matrix_unit>::scratch_size(p, rows));
}
/// Floats of scratch for `workers` workers.
inline std::int64_t attention_scratch_size(const attention_problem& problem, unsigned workers) {
  const attention_problem p = with_grouped_heads(problem, workers);
  return attention_task_scratch(p, attention_task_rows(p, workers)) * workers;
}

/// Runs an attention; tasks are blocks of queries of one head. `scratch` is aligned to 64 bytes.
inline void attention(thread_pool& pool, const attention_problem& problem, float* scratch) {
  const attention_problem p = with_grouped_heads(problem, pool.size());
  const std::int64_t most = attention_task_rows(p, pool.size()), blocks = ceil_div(p.queries, most);
  const std::int64_t each = attention_task_scratch(p, most);
  const bool on_matrix_unit = attention_on_matrix_unit::serves(p);
  pool.parallel_for(p.batch * p.heads * blocks, [&](std::int64_t task, unsigned worker) {
    const std::int64_t row0 = task % blocks * most, head = task / blocks, rows = std::min(most, p.queries - row0);
    float* const own = scratch + static_cast<std::int64_t>(worker) * each;
    const auto run = [&]<class Products>(std::in_place_type_t<Products>) {
      attention_block<Products> block(p, most, own);
      return block.run(head / p.heads, head % p.heads, row0, rows);
    };
    if (on_matrix_unit && run(std::in_place_type<attention_on_matrix_unit>)) return;
    with_stored_products(p.stored, run);
  });
}

}  // namespace kiln::kernels

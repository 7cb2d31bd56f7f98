#pragma once
#include <algorithm>
#include <cstring>

#include "kiln/kernel/rnn/linear_attention_problem.hpp"
#include "kiln/kernel/rnn/state_chunk.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::kernels {

/// Linear attention, some steps at a time (Yang et al. 2024, "Parallelizing linear transformers with the delta rule
/// over sequence length"): what the steps of a chunk recall and read of the state before it are products with vectors
/// that are known at once, what they write follows by substitution, and the state is faded and written once a chunk.
/// Fadings are multiplied, never divided by, so that a decay of zero is as good as any.
class linear_attention_run {
  using V = native_vec<float>;
  static constexpr int lanes = native_lanes<float>;
  /// A block's sums for a chunk, twice, have to stay in registers.
  static constexpr int vectors = lanes == 16 ? 2 : 1;
  static constexpr std::int64_t block = vectors * lanes;

 public:
  static constexpr std::int64_t chunk = 4;
  /// Columns of a state that a task has, at most: a strip of depth 128 stays in the first cache.
  static constexpr std::int64_t strip = 64;

  /// Floats of each worker.
  static std::int64_t scratch_size(std::int64_t each, std::int64_t depth) {
    return round_up(depth * strip + chunk_factors<chunk>::size(each, depth), 16);
  }

  /// `scratch` holds `scratch_size` for each worker.
  static void run(thread_pool& pool, const linear_attention_problem& p, float* scratch) {
    const std::int64_t states = p.batch * p.own, each = p.heads / p.own;
    const std::int64_t wide = (p.width + strip - 1) / strip;
    // tasks enough that threads end together
    const std::int64_t columns = states * wide >= 2 * std::int64_t{pool.size()} ? strip : std::max(block, strip / 2);
    const std::int64_t strips = (p.width + columns - 1) / columns;
    pool.parallel_for(states * strips, [&](std::int64_t task, unsigned worker) {
      const std::int64_t state = task / strips, from = task % strips * columns;
      linear_attention_run(p, scratch + worker * scratch_size(each, p.depth))
          .take(state / p.own, state % p.own, from, std::min(columns, p.width - from));
    });
  }

 private:
  linear_attention_run(const linear_attention_problem& p, float* scratch)
      : p_(p), each_(p.heads / p.own), state_(scratch), factors_(scratch + p.depth * strip, each_, p.depth) {}

  // `n` columns from `from` on of the state of head h.
  void take(std::int64_t b, std::int64_t h, std::int64_t from, std::int64_t n) {
    const std::int64_t at = (b * p_.own + h) * p_.depth * p_.width + from;
    const float* in = p_.first + at;
    float* const out = p_.last + at;
    std::int64_t in_row = p_.width;
    if (n % block != 0 || p_.steps == 0) {
      const std::int64_t padded = std::min(strip, round_up(n, block));
      for (std::int64_t d = 0; d < p_.depth; ++d) {
        std::memcpy(state_ + d * strip, in + d * in_row, static_cast<std::size_t>(n) * sizeof(float));
        std::fill(state_ + d * strip + n, state_ + d * strip + padded, 0.0F);
      }
      in = state_, in_row = strip;
    }
    for (std::int64_t t = 0; t < p_.steps;) {
      const std::int64_t left = p_.steps - t, steps = left >= chunk ? chunk : left >= 2 ? 2 : 1;
      const bool ends = left == steps && n % block == 0;
      const place where{b, h, t, from, n, in, in_row, ends ? out : state_, ends ? p_.width : strip};
      if (steps == chunk)
        p_.corrects ? advance<chunk, true>(where) : advance<chunk, false>(where);
      else if (steps == 2)
        p_.corrects ? advance<2, true>(where) : advance<2, false>(where);
      else
        p_.corrects ? advance<1, true>(where) : advance<1, false>(where);
      in = where.out, in_row = where.out_row;
      t += steps;
    }
    if (in == state_)
      for (std::int64_t d = 0; d < p_.depth; ++d)
        std::memcpy(out + d * p_.width, state_ + d * strip, static_cast<std::size_t>(n) * sizeof(float));
  }

  struct place {
    std::int64_t b, h, t, from, n;
    const float* in;
    std::int64_t in_row;
    float* out;
    std::int64_t out_row;
  };

  template <int N, bool Corrects> void advance(const place& w) {
    const std::int64_t step = w.b * p_.steps + w.t;
    for (std::int64_t t = N; t < std::min<std::int64_t>(2 * N, p_.steps - w.t); ++t) fetch(step + t, w);
    factors_.template take<N, Corrects>(p_.q + (step * p_.heads + w.h * each_) * p_.depth, p_.heads * p_.depth,
                                        p_.k + (step * p_.own + w.h) * p_.depth, p_.own * p_.depth,
                                        p_.decay + w.b * p_.decay_batch + w.t * p_.decay_step + w.h * p_.decay_head,
                                        p_.decay_step, p_.decay_depth);
    float beta[N];
    for (int t = 0; t < N; ++t) beta[t] = p_.beta[w.b * p_.beta_batch + (w.t + t) * p_.beta_step + w.h * p_.beta_head];
    for (std::int64_t c = 0; c < w.n; c += block) advance_block<N, Corrects>(w, c, step, beta);
  }

  // What a later step reads and writes: rows of one head are too far apart for processors to foresee.
  void fetch(std::int64_t step, const place& w) const {
    const auto lines = [](const float* p, std::int64_t n) __attribute__((always_inline)) {
      for (std::int64_t i = 0; i < n; i += 16) __builtin_prefetch(p + i, 0, 3);
    };
    lines(p_.q + (step * p_.heads + w.h * each_) * p_.depth, each_ * p_.depth);
    lines(p_.k + (step * p_.own + w.h) * p_.depth, p_.depth);
    lines(p_.v + (step * p_.own + w.h) * p_.width + w.from, w.n);
    for (std::int64_t r = 0; r < each_; ++r)
      for (std::int64_t i = 0; i < w.n; i += 16)
        __builtin_prefetch(p_.y + (step * p_.heads + w.h * each_ + r) * p_.width + w.from + i, 1, 3);
  }

  // The columns from c on of the strip.
  template <int N, bool Corrects>
  void advance_block(const place& w, std::int64_t c, std::int64_t step, const float* beta) {
    V held[N][vectors], read[N][vectors], write[N][vectors];
    recall<N, Corrects>(w.in + c, w.in_row, 0, held, read);
    const std::int64_t left = w.n - c;
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) {
      const float* const v = p_.v + ((step + t) * p_.own + w.h) * p_.width + w.from + c;
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) {
        V x = load_part(v, left, j);
        if constexpr (Corrects) {
          V sum = held[t][j];
#pragma GCC unroll 4
          for (int i = 0; i < t; ++i) sum = multiply_add(splat<V>(factors_.between_keys[t * N + i]), write[i][j], sum);
          x = splat<V>(beta[t]) * (x - sum);
        }
        write[t][j] = x;
      }
    }
    for (std::int64_t r = 0;; ++r) {
      const float* const between = factors_.between(r);
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        float* const y = p_.y + ((step + t) * p_.heads + w.h * each_ + r) * p_.width + w.from + c;
#pragma GCC unroll 2
        for (int j = 0; j < vectors; ++j) {
          V sum = read[t][j];
#pragma GCC unroll 4
          for (int i = 0; i <= t; ++i) sum = multiply_add(splat<V>(between[t * N + i]), write[i][j], sum);
          store_part(y, splat<V>(p_.scale) * sum, left, j);
        }
      }
      if (r + 1 == each_) break;
      recall<N, false>(w.in + c, w.in_row, r + 1, held, read);
    }
    update<N>(w.in + c, w.in_row, w.out + c, w.out_row, write);
  }

  // What the state before the chunk holds under its keys and, of query head r, its queries.
  template <int N, bool Corrects>
  void recall(const float* s, std::int64_t row, std::int64_t r, V (&held)[N][vectors], V (&read)[N][vectors]) const {
    V a[N][vectors], b[N][vectors];
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t)
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) a[t][j] = b[t][j] = splat<V>(0.0F);
    const std::int64_t padded = factors_.padded;
    const float *const keys = factors_.keys, *const queries = factors_.queries + r * chunk * padded;
    for (std::int64_t d = 0; d < p_.depth; ++d, s += row) {
      V x[vectors];
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) x[j] = load<V>(s + j * lanes);
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        const V q = splat<V>(queries[t * padded + d]);
#pragma GCC unroll 2
        for (int j = 0; j < vectors; ++j) b[t][j] = multiply_add(q, x[j], b[t][j]);
        if constexpr (Corrects) {
          const V k = splat<V>(keys[t * padded + d]);
#pragma GCC unroll 2
          for (int j = 0; j < vectors; ++j) a[t][j] = multiply_add(k, x[j], a[t][j]);
        }
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t)
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) {
        read[t][j] = b[t][j];
        if constexpr (Corrects) held[t][j] = a[t][j];
      }
  }

  // The state after the chunk.
  template <int N>
  void update(const float* in, std::int64_t in_row, float* out, std::int64_t out_row,
              const V (&write)[N][vectors]) const {
    const std::int64_t padded = factors_.padded;
    const float *const later = factors_.later, *const fade = factors_.fade;
    for (std::int64_t d = 0; d < p_.depth; ++d, in += in_row, out += out_row) {
      const V f = splat<V>(fade[d]);
      V x[vectors];
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) x[j] = f * load<V>(in + j * lanes);
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        const V k = splat<V>(later[t * padded + d]);
#pragma GCC unroll 2
        for (int j = 0; j < vectors; ++j) x[j] = multiply_add(k, write[t][j], x[j]);
      }
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) store(out + j * lanes, x[j]);
    }
  }

  // Vector j of a row of which `left` columns are there.
  static V load_part(const float* p, std::int64_t left, int j) {
    return left >= block ? load<V>(p + j * lanes) : load_n<V>(p + j * lanes, part(left, j));
  }
  static void store_part(float* p, V x, std::int64_t left, int j) {
    if (left >= block)
      store(p + j * lanes, x);
    else
      store_n(p + j * lanes, x, part(left, j));
  }
  static int part(std::int64_t left, int j) {
    return static_cast<int>(std::clamp<std::int64_t>(left - j * lanes, 0, lanes));
  }

  const linear_attention_problem& p_;
  const std::int64_t each_;
  float* const state_;  // [depth, strip]
  chunk_factors<chunk> factors_;
};

}  // namespace kiln::kernels

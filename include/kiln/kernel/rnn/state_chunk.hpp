#pragma once
#include <algorithm>

#include "kiln/core/simd.hpp"
#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/kernel/simd/vector.hpp"

namespace kiln::kernels {

/// What a chunk of up to `Chunk` steps of linear attention does to a state, as vectors over its depth. With
/// D(t, i) = decay of steps i + 1 to t, multiplied: for step t, keys D(t, -1) * k_t, queries D(t, -1) * q_t of each
/// query head, and later D(last, t) * k_t; fade D(last, -1).
template <std::int64_t Chunk> struct chunk_factors {
  using V = native_vec<float>;
  static constexpr int lanes = native_lanes<float>;

  std::int64_t each, depth, padded;
  float *keys, *queries, *later, *fade;  // [chunk, padded], [each, chunk, padded], [chunk, padded], [padded]
  float* between_keys;                   // [N, N], i < t: the sum over the depth of k_t * D(t, i) * k_i

  /// Floats.
  static std::int64_t size(std::int64_t each, std::int64_t depth) {
    return ((each + 2) * Chunk + 1) * round_up(depth, lanes) + (each + 1) * Chunk * Chunk;
  }
  chunk_factors(float* to, std::int64_t each, std::int64_t depth)
      : each(each),
        depth(depth),
        padded(round_up(depth, lanes)),
        keys(to),
        queries(keys + Chunk * padded),
        later(queries + each * Chunk * padded),
        fade(later + Chunk * padded),
        between_keys(fade + padded) {}

  /// [N, N], i <= t: the same of query head r instead of the key of step t.
  float* between(std::int64_t r) const { return between_keys + (r + 1) * Chunk * Chunk; }

  /// Of N steps; rows of q and k are a step apart, query heads of one step are beside each other.
  template <int N, bool Corrects>
  void take(const float* q, std::ptrdiff_t q_step, const float* k, std::ptrdiff_t k_step, const float* decay,
            std::ptrdiff_t decay_step, std::ptrdiff_t decay_depth) {
    const auto decays = [&](std::int64_t d, int t) {
      const float* const at = decay + t * decay_step + d * decay_depth;
      const int n = static_cast<int>(std::min<std::int64_t>(depth - d, lanes));
      if (decay_depth == 0) return splat<V>(*at);
      if (decay_depth == 1) return n == lanes ? load<V>(at) : load_n<V>(at, n);
      V x = splat<V>(0.0F);
      for (int i = 0; i < n; ++i) x[i] = at[i * decay_depth];
      return x;
    };
    for (std::int64_t d = 0; d < depth; d += lanes) {
      V f = splat<V>(1.0F);
      for (int t = N - 1; t >= 0; --t) {
        store(later + t * padded + d, row(k + t * k_step, d) * f);
        f *= decays(d, t);
      }
      store(fade + d, f);
    }
    if constexpr (Corrects) against_keys<N, false>(k, k_step, k, k_step, decays, keys, between_keys);
    for (std::int64_t r = 0; r < each; ++r)
      against_keys<N, true>(q + r * depth, q_step, k, k_step, decays, queries + r * Chunk * padded, between(r));
  }

 private:
  V row(const float* p, std::int64_t d) const {
    return depth - d >= lanes ? load<V>(p + d) : load_n<V>(p + d, static_cast<int>(depth - d));
  }

  // Rows x_t, faded back to the chunk's begin, and their products with the keys of earlier steps, and of their own.
  template <int N, bool Own>
  void against_keys(const float* x, std::ptrdiff_t x_step, const float* k, std::ptrdiff_t k_step, const auto& decays,
                    float* faded, float* sums) const {
    V sum[N][N];
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t)
#pragma GCC unroll 4
      for (int i = 0; i <= t; ++i) sum[t][i] = splat<V>(0.0F);
    for (std::int64_t d = 0; d < depth; d += lanes) {
      V key[N], decay[N];
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) key[t] = row(k + t * k_step, d), decay[t] = decays(d, t);
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        V now = row(x + t * x_step, d);
#pragma GCC unroll 4
        for (int i = t; i >= 0; --i) {
          if (Own || i < t) sum[t][i] = multiply_add(now, key[i], sum[t][i]);
          now *= decay[i];
        }
        store(faded + t * padded + d, now);
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t)
#pragma GCC unroll 4
      for (int i = 0; i <= t; ++i)
        if (Own || i < t) sums[t * N + i] = reduce_add(sum[t][i]);
  }
};

}  // namespace kiln::kernels

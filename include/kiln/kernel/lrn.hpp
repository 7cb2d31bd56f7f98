#pragma once
#include <algorithm>

#include "kiln/core/math.hpp"
#include "kiln/core/simd.hpp"
#include "kiln/kernel/pooling_problem.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::kernels {

/// x^-beta for positive x: the common 0.75 by two square roots, others through exp and log.
template <class V>
V negative_power(V x, float beta) {
  if (beta == 0.75F) {
    const V root = sqrt(x);
    return broadcast<V>(1.0F) / (root * sqrt(root));
  }
  if (beta == 0.5F) return broadcast<V>(1.0F) / sqrt(x);
  return exp(log(x) * broadcast<V>(-beta));
}

/// Local response normalisation: for a vector of pixels, a sliding window of squares runs over the channels.
inline void local_response_norm(thread_pool& pool, const lrn_problem& p) {
  using V = vec<float, native_lanes<float>>;
  constexpr int lanes = native_lanes<float>;
  const std::int64_t columns = (p.pixels + lanes - 1) / lanes;
  const std::int64_t before = (p.size - 1) / 2, after = p.size / 2;
  const V factor = broadcast<V>(p.alpha / static_cast<float>(p.size)), bias = broadcast<V>(p.bias);
  constexpr std::int64_t columns_a_task = 4;
  const std::int64_t tasks = (columns + columns_a_task - 1) / columns_a_task;
  pool.parallel_for(p.batch * tasks, [&](std::int64_t task, unsigned) {
    const std::int64_t last = std::min(columns, (task % tasks + 1) * columns_a_task);
    for (std::int64_t column = task % tasks * columns_a_task; column < last; ++column) {
      const std::int64_t at = task / tasks * p.channels * p.pixels + column * lanes;
      const int n = static_cast<int>(std::min<std::int64_t>(lanes, p.pixels - column * lanes));
      const auto square = [&](std::int64_t c) {
        const V v = load_n<V>(p.x + at + c * p.pixels, n);
        return v * v;
      };
      for (std::int64_t c = 0; c < p.channels; ++c) {
        // summed afresh: a running sum would cancel badly where squares differ by orders of magnitude
        V sum{};
        for (std::int64_t k = std::max<std::int64_t>(0, c - before); k <= std::min(p.channels - 1, c + after); ++k)
          sum += square(k);
        const V scale = negative_power(fma(factor, sum, bias), p.beta);
        store_n(p.y + at + c * p.pixels, load_n<V>(p.x + at + c * p.pixels, n) * scale, n);
      }
    }
  });
}

}  // namespace kiln::kernels

#pragma once
#include <algorithm>
#include <limits>

#include "kiln/core/math.hpp"
#include "kiln/core/simd.hpp"
#include "kiln/kernel/pooling_problem.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::kernels {

/// One plane of a pooling. Rows are pooled by adding whole input rows into an output row where the stride is 1, and
/// element by element otherwise.
class pooled_plane {
 public:
  pooled_plane(const pooling_problem& p, std::int64_t plane)
      : p_(p),
        x_(p.x + plane * p.input[0] * p.input[1] * p.input[2]),
        y_(p.y + plane * p.output[0] * p.output[1] * p.output[2]) {}

  void run() const {
    for (std::int64_t d = 0; d < p_.output[0]; ++d)
      for (std::int64_t h = 0; h < p_.output[1]; ++h) row(d, h, y_ + (d * p_.output[1] + h) * p_.output[2]);
  }

 private:
  struct range {
    std::int64_t first, last, step, counted;  // elements inside, and how many a mean counts
  };
  range window(std::size_t axis, std::int64_t at) const {
    const std::int64_t start = at * p_.stride[axis] - p_.pad_begin[axis], step = p_.dilation[axis];
    const std::int64_t end = start + p_.window[axis] * step;
    const std::int64_t first = start < 0 ? start + (step - 1 - start) / step * step : start;
    const std::int64_t padded = std::min(end, p_.input[axis] + p_.pad_end[axis]);
    return {first, std::min(end, p_.input[axis]), step, (padded - start + step - 1) / step};
  }

  void row(std::int64_t d, std::int64_t h, float* out) const {
    const range wd = window(0, d), wh = window(1, h);
    for (std::int64_t w = 0; w < p_.output[2]; ++w) {
      const range ww = window(2, w);
      float acc = p_.average ? 0.0F : -std::numeric_limits<float>::infinity();
      std::int64_t inside = 0;
      for (std::int64_t a = wd.first; a < wd.last; a += wd.step)
        for (std::int64_t b = wh.first; b < wh.last; b += wh.step) {
          const float* in = x_ + (a * p_.input[1] + b) * p_.input[2];
          for (std::int64_t c = ww.first; c < ww.last; c += ww.step, ++inside)
            acc = p_.average ? acc + in[c] : max(acc, in[c]);
        }
      if (p_.average) {
        const std::int64_t counted = p_.count_padding ? wd.counted * wh.counted * ww.counted : inside;
        acc = counted == 0 ? 0.0F : acc / static_cast<float>(counted);
      }
      out[w] = acc;
    }
  }

  const pooling_problem& p_;
  const float* x_;
  float* y_;
};

/// Mean or greatest element of whole planes.
inline float reduce_plane(const float* x, std::int64_t n, bool average) {
  using V = vec<float, native_lanes<float>>;
  constexpr int lanes = native_lanes<float>;
  V acc = broadcast<V>(average ? 0.0F : -std::numeric_limits<float>::infinity());
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) acc = average ? acc + load<V>(x + i) : max(acc, load<V>(x + i));
  float result = average ? reduce_add(acc) : acc[0];
  if (!average)
    for (int k = 1; k < lanes; ++k) result = max(result, static_cast<float>(acc[k]));
  for (; i < n; ++i) result = average ? result + x[i] : max(result, x[i]);
  return average ? result / static_cast<float>(n) : result;
}

/// Pools every plane; a task is a few planes.
inline void pool_planes(thread_pool& pool, const pooling_problem& p) {
  const std::int64_t in = p.input[0] * p.input[1] * p.input[2];
  const bool whole = p.output == pooling_problem::extents{1, 1, 1} && p.window == p.input &&
                     p.pad_begin == pooling_problem::extents{} && p.pad_end == pooling_problem::extents{};
  const std::int64_t planes = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, in));
  pool.parallel_for((p.planes + planes - 1) / planes, [&](std::int64_t task, unsigned) {
    for (std::int64_t i = task * planes; i < std::min(p.planes, (task + 1) * planes); ++i) {
      if (whole)
        p.y[i] = reduce_plane(p.x + i * in, in, p.average);
      else
        pooled_plane(p, i).run();
    }
  });
}

}  // namespace kiln::kernels

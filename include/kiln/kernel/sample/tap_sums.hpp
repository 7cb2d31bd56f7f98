#pragma once
#include <algorithm>

#include "kiln/kernel/sample/taps.hpp"

namespace kiln::kernels {

/// Takes the sums of one plane after the other.
class tap_sums {
 public:
  static void run(const tap_problem& p) {
    for (std::int64_t c = 0; c < p.planes; ++c) {
      const float* const x = p.x + c * p.x_plane;
      float* const y = p.y + c * p.y_plane;
      if (p.greatest || p.adds) {
        p.greatest ? some<true>(p, x, y) : some<false>(p, x, y);
        continue;
      }
      switch (p.taps) {
        case 1: plane<1>(p, x, y); break;
        case 4: plane<4>(p, x, y); break;
        case 8: plane<8>(p, x, y); break;
        default: some<false>(p, x, y);
      }
    }
  }

 private:
  template <int Taps> static void plane(const tap_problem& p, const float* __restrict x, float* __restrict y) {
    const std::int32_t* __restrict at[Taps];
    const float* __restrict w[Taps];
    for (int k = 0; k < Taps; ++k) at[k] = p.at + k * p.step, w[k] = p.weights + k * p.step;
    for (std::int64_t i = 0; i < p.count; ++i) {
      float sum = w[0][i] * x[at[0][i]];
      for (int k = 1; k < Taps; ++k) sum += w[k][i] * x[at[k][i]];
      y[i] = sum;
    }
  }
  // Any number of taps: a block of results at once.
  template <bool Greatest> static void some(const tap_problem& p, const float* __restrict x, float* __restrict y) {
    constexpr std::int64_t block = 64;
    float acc[block];
    for (std::int64_t first = 0; first < p.count; first += block) {
      const std::int64_t n = std::min(block, p.count - first);
      const std::int32_t* __restrict at = p.at + first;
      const float* __restrict w = p.weights + first;
      if (p.adds)
        for (std::int64_t i = 0; i < n; ++i) acc[i] = y[first + i];
      else
        for (std::int64_t i = 0; i < n; ++i) acc[i] = w[i] * x[at[i]];
      for (std::int64_t k = p.adds ? 0 : 1; k < p.taps; ++k) {
        const std::int32_t* __restrict own = at + k * p.step;
        const float* __restrict by = w + k * p.step;
        for (std::int64_t i = 0; i < n; ++i) {
          const float v = by[i] * x[own[i]];
          acc[i] = !Greatest ? acc[i] + v : acc[i] > v ? acc[i] : v;
        }
      }
      for (std::int64_t i = 0; i < n; ++i) y[first + i] = acc[i];
    }
  }
};

}  // namespace kiln::kernels

#pragma once
#include <algorithm>
#include <cstring>

#include "kiln/kernel/sample/grid_problem.hpp"
#include "kiln/kernel/simd/strided_lanes.hpp"
#include "kiln/op/nn/grid_sample.hpp"

namespace kiln::kernels {

/// Places and weights of the taps of many positions, a vector of them at once by the text of the op.
template <class T> class grid_taps {
  using V = native_vec<T>;
  static constexpr int lanes = native_lanes<T>;
  using I = vec<std::int32_t, lanes>;

 public:
  static void find(const grid_problem& p) {
    const auto axes = static_cast<std::int64_t>(p.axes);
    const T* from = static_cast<const T*>(p.positions);
    for (std::int64_t i = 0; i < p.count; i += lanes, from += lanes * axes) {
      T rest[3 * lanes] = {};  // nothing is read past the last position
      const bool whole = i + lanes <= p.count;
      if (!whole) std::memcpy(rest, from, static_cast<std::size_t>((p.count - i) * axes) * sizeof(T));
      some(p, whole ? from : rest, i);
    }
  }

 private:
  static void some(const grid_problem& p, const T* positions, std::int64_t i) {
    const auto axes = static_cast<std::int64_t>(p.axes);
    op::grid_sample::axis_taps<V> taps[3];
    I at[3][4] = {};
    for (std::size_t d = 0; d < p.axes; ++d) {
      const std::size_t own = 3 - p.axes + d;
      taps[own] = p.op.taps_at(strided_lanes<V>(positions + p.op.coordinate(d, p.axes), axes), p.lens[own]);
      // beyond 2^24 the last place as f32 may be the extent
      const I last = broadcast<I>(static_cast<std::int32_t>(p.lens[own] - 1));
      for (std::int64_t k = 0; k < taps[own].count; ++k) at[own][k] = kiln::min(convert<I>(taps[own].at[k]), last);
    }
    const I high = broadcast<I>(static_cast<std::int32_t>(p.lens[1])),
            wide = broadcast<I>(static_cast<std::int32_t>(p.lens[2]));
    std::int32_t* places = p.at + i;
    T* weights = static_cast<T*>(p.weights) + i;
    for (std::int64_t a = 0; a < taps[0].count; ++a)
      for (std::int64_t b = 0; b < taps[1].count; ++b) {
        const I row = (at[0][a] * high + at[1][b]) * wide;
        const V weight = taps[0].weight[a] * taps[1].weight[b];
        for (std::int64_t c = 0; c < taps[2].count; ++c, places += p.step, weights += p.step) {
          store(places, row + at[2][c]);
          store(weights, weight * taps[2].weight[c]);
        }
      }
  }
};

}  // namespace kiln::kernels

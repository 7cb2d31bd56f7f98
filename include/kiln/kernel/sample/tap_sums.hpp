#pragma once
#include <limits>

#include "kiln/core/math.hpp"

#include "kiln/kernel/sample/taps.hpp"
#include "kiln/kernel/simd/vector.hpp"

namespace kiln::kernels {

/// Where channels lie side by side, vectors run over them, one result after the other; else it is plane after plane.
class tap_sums {
  using V = native_vec<float>;
  static constexpr std::int64_t lanes = native_lanes<float>, wide = 4;

 public:
  static void run(const tap_problem& p) {
    if (p.x_plane == 0) return p.greatest ? results<true>(p) : results<false>(p);
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const float* const x = p.x + c * p.x_plane;
      float* const y = p.y + c * p.y_plane;
      if (p.greatest)
        plane<0, true>(p, x, y);
      else if (p.taps == 4)
        plane<4, false>(p, x, y);
      else
        plane<0, false>(p, x, y);
    }
  }

 private:
  template <int Taps, bool Greatest> static void plane(const tap_problem& p, const float* x, float* y) {
    const std::int64_t taps = Taps == 0 ? p.taps : Taps;
    const std::int32_t* at = p.at;
    const float* weights = p.weights;
    for (std::int64_t i = 0; i < p.count; ++i, at += taps, weights += taps) {
      float acc = p.adds ? y[i] : Greatest ? -std::numeric_limits<float>::infinity() : 0.0F;
      for (std::int64_t k = 0; k < taps; ++k) {
        const float v = weights[k] * x[at[k]];
        acc = Greatest ? kiln::max(acc, v) : acc + v;
      }
      y[i] = acc;
    }
  }
  template <bool Greatest> static void results(const tap_problem& p) {
    for (std::int64_t i = 0; i < p.count; ++i) {
      const std::int32_t* const at = p.at + i * p.taps;
      const float* const weights = p.weights + i * p.taps;
      float* const y = p.y + i * p.channels;
      std::int64_t c = 0;
      for (; c + wide * lanes <= p.channels; c += wide * lanes)
        part<Greatest, wide>(
            p, at, weights, c, y, [](const float* from) { return load<V>(from); },
            [](float* to, V v) { store(to, v); });
      for (; c + lanes <= p.channels; c += lanes)
        part<Greatest, 1>(
            p, at, weights, c, y, [](const float* from) { return load<V>(from); },
            [](float* to, V v) { store(to, v); });
      if (const int rest = static_cast<int>(p.channels - c); rest > 0)
        part<Greatest, 1>(
            p, at, weights, c, y, [rest](const float* from) { return load_n<V>(from, rest); },
            [rest](float* to, V v) { store_n(to, v, rest); });
    }
  }
  // Vectors [c, c + Count * lanes) of a result's channels.
  template <bool Greatest, int Count, class Read, class Write>
  static KILN_FN void part(const tap_problem& p, const std::int32_t* at, const float* weights, std::int64_t c, float* y,
                           Read&& read, Write&& write) {
    V acc[Count];
    for (int v = 0; v < Count; ++v)
      acc[v] =
          p.adds ? read(y + c + v * lanes) : broadcast<V>(Greatest ? -std::numeric_limits<float>::infinity() : 0.0F);
    for (std::int64_t k = 0; k < p.taps; ++k) {
      const float* const from = p.x + at[k] * p.channels + c;
      const V by = broadcast<V>(weights[k]);
      for (int v = 0; v < Count; ++v) {
        const V x = read(from + v * lanes);
        acc[v] = Greatest ? kiln::max(acc[v], x * by) : multiply_add(x, by, acc[v]);
      }
    }
    for (int v = 0; v < Count; ++v) write(y + c + v * lanes, acc[v]);
  }
};

}  // namespace kiln::kernels

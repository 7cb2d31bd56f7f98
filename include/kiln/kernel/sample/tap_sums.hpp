#pragma once
#include <algorithm>
#include <limits>

#include "kiln/core/math.hpp"

#include "kiln/kernel/sample/taps.hpp"
#include "kiln/kernel/simd/vector.hpp"

namespace kiln::kernels {

/// Where channels lie side by side, vectors run over them, one result after the other; else it is plane after plane.
template <class T> class tap_sums {
  using V = native_vec<T>;
  using problem = tap_problem<T>;
  static constexpr std::int64_t lanes = native_lanes<T>, wide = 4;

 public:
  static void run(const problem& p) {
    if (p.x_plane == 0) return p.greatest ? results<true>(p) : results<false>(p);
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const T* const x = p.x + c * p.x_plane;
      T* const y = p.y + c * p.y_plane;
      if (p.greatest)
        plane<0, true>(p, x, y);
      else if (p.result_step == 1 && !p.adds)
        plane_by_taps(p, x, y);
      else if (p.taps == 4)
        plane<4, false>(p, x, y);
      else
        plane<0, false>(p, x, y);
    }
  }

 private:
  static constexpr T least = -std::numeric_limits<T>::infinity();

  template <int Taps, bool Greatest> static void plane(const problem& p, const T* x, T* y) {
    const std::int64_t taps = Taps == 0 ? p.taps : Taps;
    const std::int32_t* at = p.at;
    const T* weights = p.weights;
    for (std::int64_t i = 0; i < p.count; ++i, at += p.result_step, weights += p.result_step) {
      T acc = p.adds ? y[i] : Greatest ? least : T(0);
      for (std::int64_t k = 0; k < taps; ++k) {
        const T v = weights[k * p.tap_step] * x[at[k * p.tap_step]];
        acc = Greatest ? kiln::max(acc, v) : acc + v;
      }
      y[i] = acc;
    }
  }
  // Results side by side: loops over them, which compilers make vectors of, add up to four taps at a time.
  static void plane_by_taps(const problem& p, const T* x, T* y) {
    std::int64_t k = std::min<std::int64_t>(p.taps, 4);
    switch (k) {
      case 0: return std::fill_n(y, p.count, T(0)), void();
      case 1: add_taps<1, false>(p, x, y, 0); break;
      case 2: add_taps<2, false>(p, x, y, 0); break;
      case 3: add_taps<3, false>(p, x, y, 0); break;
      default: add_taps<4, false>(p, x, y, 0);
    }
    for (; k + 4 <= p.taps; k += 4) add_taps<4, true>(p, x, y, k);
    for (; k < p.taps; ++k) add_taps<1, true>(p, x, y, k);
  }
  template <int Taps, bool Adds>
  static void add_taps(const problem& p, const T* __restrict x, T* __restrict y, std::int64_t first) {
    const std::int32_t* const __restrict at = p.at + first * p.tap_step;
    const T* const __restrict weights = p.weights + first * p.tap_step;
    const std::int64_t step = p.tap_step;
    for (std::int64_t i = 0; i < p.count; ++i) {
      T sum = Adds ? y[i] + weights[i] * x[at[i]] : weights[i] * x[at[i]];
      for (int k = 1; k < Taps; ++k) sum += weights[k * step + i] * x[at[k * step + i]];
      y[i] = sum;
    }
  }
  template <bool Greatest> static void results(const problem& p) {
    for (std::int64_t i = 0; i < p.count; ++i) {
      const std::int32_t* const at = p.at + i * p.result_step;
      const T* const weights = p.weights + i * p.result_step;
      T* const y = p.y + i * p.channels;
      std::int64_t c = 0;
      for (; c + wide * lanes <= p.channels; c += wide * lanes)
        part<Greatest, wide>(
            p, at, weights, c, y, [](const T* from) { return load<V>(from); }, [](T* to, V v) { store(to, v); });
      for (; c + lanes <= p.channels; c += lanes)
        part<Greatest, 1>(
            p, at, weights, c, y, [](const T* from) { return load<V>(from); }, [](T* to, V v) { store(to, v); });
      if (const int rest = static_cast<int>(p.channels - c); rest > 0)
        part<Greatest, 1>(
            p, at, weights, c, y, [rest](const T* from) { return load_n<V>(from, rest); },
            [rest](T* to, V v) { store_n(to, v, rest); });
    }
  }
  // Vectors [c, c + Count * lanes) of a result's channels.
  template <bool Greatest, int Count, class Read, class Write>
  static KILN_FN void part(const problem& p, const std::int32_t* at, const T* weights, std::int64_t c, T* y,
                           Read&& read, Write&& write) {
    V acc[Count];
    for (int v = 0; v < Count; ++v) acc[v] = p.adds ? read(y + c + v * lanes) : broadcast<V>(Greatest ? least : T(0));
    for (std::int64_t k = 0; k < p.taps; ++k) {
      const T* const from = p.x + at[k * p.tap_step] * p.channels + c;
      const V by = broadcast<V>(weights[k * p.tap_step]);
      for (int v = 0; v < Count; ++v) {
        const V x = read(from + v * lanes);
        acc[v] = Greatest ? kiln::max(acc[v], x * by) : multiply_add(x, by, acc[v]);
      }
    }
    for (int v = 0; v < Count; ++v) write(y + c + v * lanes, acc[v]);
  }
};

}  // namespace kiln::kernels

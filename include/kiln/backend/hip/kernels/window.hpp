#pragma once
#include "kiln/backend/hip/kernels/elements.hpp"
#include "kiln/core/math/pow.hpp"
#include "kiln/core/math/root.hpp"

namespace kiln::device {

/// One result of a pooling (Mode 0 greatest, 1 mean, 2 power mean) over up to three dims. n: for each of the dims the
/// input's and the result's extent, window, stride, dilation, padding before and behind; then whether padding counts in
/// a mean, the power, and the least value of the dtype.
template <int Mode, class T>
KILN_FN void pool(T* out, const T* in, const i64* n, i64 at) {
  using V = decltype(value_of(*in));
  int position[3];
  i64 rest = at;
  for (int d = 2; d >= 0; --d) {
    const i64 q = rest / n[7 * d + 1];
    position[d] = static_cast<int>(rest - q * n[7 * d + 1]);
    rest = q;
  }
  int low[3], high[3];
  i64 whole = 1;
  for (int d = 0; d < 3; ++d) {
    const i64* m = n + 7 * d;
    const int start = position[d] * static_cast<int>(m[3]) - static_cast<int>(m[5]), step = static_cast<int>(m[4]);
    const int reach = static_cast<int>(m[2]) * step, extent = static_cast<int>(m[0]),
              padded = extent + static_cast<int>(m[6]);
    low[d] = start < 0 ? start + (-start + step - 1) / step * step : start;
    high[d] = start + reach < extent ? start + reach : extent;
    whole *= ((start + reach < padded ? start + reach : padded) - start + step - 1) / step;
  }
  const T* plane = in + rest * (n[0] * n[7] * n[14]);
  V sum = V(0);
  if constexpr (Mode == 0) {
    if constexpr (is_real<V>)
      sum = -elementary::infinity<V>();
    else
      sum = static_cast<V>(n[23]);
  }
  i64 inside = 0;
  for (int i = low[0]; i < high[0]; i += static_cast<int>(n[4]))
    for (int j = low[1]; j < high[1]; j += static_cast<int>(n[11]))
      for (int k = low[2]; k < high[2]; k += static_cast<int>(n[18]), ++inside) {
        const V x = value_of(plane[(i * n[7] + j) * n[14] + k]);
        if constexpr (Mode == 0) {
          if (x > sum || x != x) sum = x;
        } else if constexpr (Mode == 1) {
          sum += x;
        } else {
          const V magnitude = x < V(0) ? V(0) - x : x;
          V power = magnitude;
          for (i64 e = 1; e < n[22]; ++e) power *= magnitude;
          sum += power;
        }
      }
  if constexpr (is_real<V>) {
    const i64 count = n[21] != 0 ? whole : inside;
    if constexpr (Mode == 1) sum = count != 0 ? sum / static_cast<V>(count) : V(0);
    if constexpr (Mode == 2) {
      if (n[22] == 2)
        sum = kiln::sqrt(sum);
      else if (n[22] != 1)
        sum = kiln::pow(sum, V(1) / static_cast<V>(n[22]));
    }
  }
  out[at] = stored<T>(sum);
}

/// One element normalised across channels. n: channels, elements behind them, channels before and behind.
template <class T>
KILN_FN void lrn(T* out, const T* in, const i64* n, double alpha, double beta, double bias, i64 at) {
  using V = decltype(value_of(*in));
  const i64 inner = n[1], row = at / inner, c = row % n[0];
  const i64 low = c > n[2] ? c - n[2] : 0, high = c + n[3] < n[0] ? c + n[3] : n[0] - 1;
  V sum = V(0);
  for (i64 k = low; k <= high; ++k) {
    const V x = value_of(in[at + (k - c) * inner]);
    sum += x * x;
  }
  out[at] =
      stored<T>(value_of(in[at]) / kiln::pow(static_cast<V>(bias) + static_cast<V>(alpha) * sum, static_cast<V>(beta)));
}

}  // namespace kiln::device

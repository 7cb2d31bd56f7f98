#pragma once
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/backend/hip/kernels/reduce/arguments.hpp"
#include "kiln/core/math/pow.hpp"
#include "kiln/core/math/root.hpp"

namespace kiln::gpu {

/// The results of a pooling (Mode 0 greatest, 1 mean, 2 power mean) over up to three dims at one place, for `Run`
/// neighboring channels. Channels are counted within places with `Last`, places within channels without.
template <int Mode, bool Last, int Run, class T> KILN_FN void pool(T* out, const T* in, const pool_sizes& n, i64 at) {
  using V = decltype(value_of(*in));
  using run = pack<T, Run>;
  i64 rest = at, channel = 0;
  const auto next = [&rest](i64 extent) {
    const i64 q = rest / extent, r = rest - q * extent;
    rest = q;
    return r;
  };
  if constexpr (Last) channel = next(n.channels);
  int position[3];
  for (int d = 2; d >= 0; --d) position[d] = static_cast<int>(next(n.dims[d].out));
  if constexpr (!Last) channel = next(n.channels);
  int low[3], high[3];
  i64 whole = 1;
  const T* plane = in + rest * n.image.in + channel * n.channel.in;
  T* to = out + rest * n.image.out + channel * n.channel.out;
  for (int d = 0; d < 3; ++d) {
    const pool_sizes::dim& m = n.dims[d];
    const int start = position[d] * static_cast<int>(m.stride) - static_cast<int>(m.before),
              step = static_cast<int>(m.dilation);
    const int reach = static_cast<int>(m.window) * step, extent = static_cast<int>(m.in),
              padded = extent + static_cast<int>(m.after);
    low[d] = start < 0 ? start + (-start + step - 1) / step * step : start;
    high[d] = start + reach < extent ? start + reach : extent;
    whole *= ((start + reach < padded ? start + reach : padded) - start + step - 1) / step;
    to += position[d] * m.out_step;
  }
  V sum[Run];
  KILN_UNROLL
  for (int c = 0; c < Run; ++c) {
    sum[c] = V(0);
    if constexpr (Mode == 0) {
      if constexpr (is_real<V>)
        sum[c] = -elementary::infinity<V>();
      else
        sum[c] = static_cast<V>(n.least);
    }
  }
  i64 inside = 0;
  for (int i = low[0]; i < high[0]; i += static_cast<int>(n.dims[0].dilation))
    for (int j = low[1]; j < high[1]; j += static_cast<int>(n.dims[1].dilation))
      for (int k = low[2]; k < high[2]; k += static_cast<int>(n.dims[2].dilation), ++inside) {
        const run all = *reinterpret_cast<const run*>(plane + i * n.dims[0].in_step + j * n.dims[1].in_step +
                                                      k * n.dims[2].in_step);
        KILN_UNROLL
        for (int c = 0; c < Run; ++c) {
          const V x = value_of(all.at[c]);
          if constexpr (Mode == 0) {
            if (x > sum[c] || x != x) sum[c] = x;
          } else if constexpr (Mode == 1) {
            sum[c] += x;
          } else {
            const V magnitude = x < V(0) ? V(0) - x : x;
            V power = magnitude;
            for (i64 e = 1; e < n.power; ++e) power *= magnitude;
            sum[c] += power;
          }
        }
      }
  run made;
  KILN_UNROLL
  for (int c = 0; c < Run; ++c) {
    if constexpr (is_real<V>) {
      const i64 count = n.counts_padding != 0 ? whole : inside;
      if constexpr (Mode == 1) sum[c] = count != 0 ? sum[c] / static_cast<V>(count) : V(0);
      if constexpr (Mode == 2) {
        if (n.power == 2)
          sum[c] = kiln::sqrt(sum[c]);
        else if (n.power != 1)
          sum[c] = kiln::pow(sum[c], V(1) / static_cast<V>(n.power));
      }
    }
    made.at[c] = stored<T>(sum[c]);
  }
  *reinterpret_cast<run*>(to) = made;
}

/// One element normalized across channels.
template <class T> KILN_FN void lrn(T* out, const T* in, const lrn_sizes& n, i64 at) {
  using V = decltype(value_of(*in));
  const i64 inner = n.inner, row = at / inner, c = row % n.channels;
  const i64 low = c > n.before ? c - n.before : 0, high = c + n.after < n.channels ? c + n.after : n.channels - 1;
  V sum = V(0);
  for (i64 k = low; k <= high; ++k) {
    const V x = value_of(in[at + (k - c) * inner]);
    sum += x * x;
  }
  out[at] = stored<T>(value_of(in[at]) /
                      kiln::pow(static_cast<V>(n.bias) + static_cast<V>(n.alpha) * sum, static_cast<V>(n.beta)));
}

}  // namespace kiln::gpu

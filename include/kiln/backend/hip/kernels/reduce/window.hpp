#pragma once
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/backend/hip/kernels/reduce/arguments.hpp"
#include "kiln/core/math/pow.hpp"
#include "kiln/core/math/root.hpp"

namespace kiln::gpu {

/// The taps of a window along its dims where they are known: loops over them are written out. 0: they are not.
template <int Planes, int Rows, int Cols> struct window_taps {
  static constexpr int planes = Planes, rows = Rows, cols = Cols;
};

/// Calls `tap(i, j, k)` for each tap of a window.
template <class Taps, class Tap> KILN_FN void each_tap(const pool_sizes& n, Tap tap) {
  if constexpr (Taps::planes != 0) {
    KILN_UNROLL
    for (int i = 0; i < Taps::planes; ++i) {
      KILN_UNROLL
      for (int j = 0; j < Taps::rows; ++j) {
        KILN_UNROLL
        for (int k = 0; k < Taps::cols; ++k) tap(i, j, k);
      }
    }
  } else {
    const int planes = static_cast<int>(n.dims[0].window), rows = static_cast<int>(n.dims[1].window),
              cols = static_cast<int>(n.dims[2].window);
    for (int i = 0; i < planes; ++i)
      for (int j = 0; j < rows; ++j) {
        if constexpr (Taps::cols != 0) {
          KILN_UNROLL
          for (int k = 0; k < Taps::cols; ++k) tap(i, j, k);
        } else {
          for (int k = 0; k < cols; ++k) tap(i, j, k);
        }
      }
  }
}

// Conditions without a branch.
KILN_FN bool both(bool a, bool b) { return (static_cast<int>(a) & static_cast<int>(b)) != 0; }
KILN_FN bool either(bool a, bool b) { return (static_cast<int>(a) | static_cast<int>(b)) != 0; }
KILN_FN bool is_within(int place, i64 extent) {
  return static_cast<u32>(place) < static_cast<u32>(static_cast<int>(extent));
}

KILN_FN int clamped(int place, i64 extent) {
  const int last = static_cast<int>(extent) - 1;
  return place < 0 ? 0 : place < last ? place : last;
}

/// What a pooling does with a window's values (Mode 0 greatest, 1 mean, 2 power mean): the sum of none, a value that
/// was read as it is summed, a sum with one more, and what becomes of a sum of `count` values.
template <int Mode, class V> struct pool_sum {
  const pool_sizes& n;
  KILN_FN V none() const {
    if constexpr (Mode != 0)
      return V(0);
    else if constexpr (is_real<V>)
      return -elementary::infinity<V>();
    else
      return static_cast<V>(n.least);
  }
  KILN_FN V term(V x) const {
    if constexpr (Mode != 2) {
      return x;
    } else {
      const V magnitude = x < V(0) ? V(0) - x : x;
      V power = n.power == 1 ? magnitude : magnitude * magnitude;
      for (i64 e = 2; e < n.power; ++e) power *= magnitude;
      return power;
    }
  }
  KILN_FN static V join(V sum, V x) {
    if constexpr (Mode == 0)
      return either(x > sum, x != x) ? x : sum;
    else
      return sum + x;
  }
  KILN_FN V end(V sum, int count) const {
    if constexpr (is_real<V>) {
      if constexpr (Mode == 1) return count != 0 ? sum / static_cast<V>(count) : V(0);
      if constexpr (Mode == 2)
        return n.power == 2 ? kiln::sqrt(sum) : n.power == 1 ? sum : kiln::pow(sum, V(1) / static_cast<V>(n.power));
    }
    return sum;
  }
};

/// A window along one dim: its first place, and how many of its taps lie within the operand, or within that and the
/// padding after it.
struct pool_window {
  int start, inside, whole;
  KILN_FN pool_window(const pool_sizes::dim& m, int position) {
    const int step = static_cast<int>(m.dilation), extent = static_cast<int>(m.in);
    start = position * static_cast<int>(m.stride) - static_cast<int>(m.before);
    const int reach = start + static_cast<int>(m.window) * step, padded = extent + static_cast<int>(m.after);
    const int low = start < 0 ? start + (-start + step - 1) / step * step : start;
    const int high = reach < extent ? reach : extent;
    whole = ((reach < padded ? reach : padded) - start + step - 1) / step;
    inside = high > low ? (high - low + step - 1) / step : 0;
  }
};

/// The results of a pooling over up to three dims at one place, for `Run` neighboring channels. Channels are counted
/// within places with `Last`, places within channels without. A tap outside reads another element instead, so that no
/// branch parts the reads.
template <int Mode, bool Last, int Run, class Taps, class T, class Index>
KILN_FN void pool(T* out, const T* in, const pool_sizes& n, Index at) {
  using V = decltype(value_of(*in));
  using run = pack<T, Run>;
  const pool_sum<Mode, V> how{n};
  Index rest = at, channel = 0;
  const auto next = [&rest](i64 count) {
    const auto extent = static_cast<Index>(count);
    const Index q = rest / extent, r = rest - q * extent;
    rest = q;
    return r;
  };
  if constexpr (Last) channel = next(n.channels);
  int position[3];
  for (int d = 2; d >= 0; --d) position[d] = static_cast<int>(next(n.dims[d].out));
  if constexpr (!Last) channel = next(n.channels);
  const pool_window w[3] = {{n.dims[0], position[0]}, {n.dims[1], position[1]}, {n.dims[2], position[2]}};
  const T* plane = in + rest * static_cast<Index>(n.image.in) + channel * static_cast<Index>(n.channel.in);
  T* to = out + rest * static_cast<Index>(n.image.out) + channel * static_cast<Index>(n.channel.out);
  for (int d = 0; d < 3; ++d) to += static_cast<Index>(position[d]) * static_cast<Index>(n.dims[d].out_step);
  V sum[Run];
  KILN_UNROLL
  for (int c = 0; c < Run; ++c) sum[c] = how.none();
  each_tap<Taps>(n, [&](int i, int j, int k) {
    const int tap[3] = {i, j, k};
    bool there = true;
    Index offset = 0;
    KILN_UNROLL
    for (int d = 0; d < 3; ++d) {
      const int place = w[d].start + tap[d] * static_cast<int>(n.dims[d].dilation);
      there = both(there, is_within(place, n.dims[d].in));
      offset += static_cast<Index>(place) * static_cast<Index>(n.dims[d].in_step);
    }
    const run all = *reinterpret_cast<const run*>(plane + (there ? offset : 0));
    KILN_UNROLL
    for (int c = 0; c < Run; ++c) sum[c] = how.join(sum[c], there ? how.term(value_of(all.at[c])) : how.none());
  });
  const int count =
      n.counts_padding != 0 ? w[0].whole * w[1].whole * w[2].whole : w[0].inside * w[1].inside * w[2].inside;
  run made;
  KILN_UNROLL
  for (int c = 0; c < Run; ++c) made.at[c] = stored<T>(how.end(sum[c], count));
  *reinterpret_cast<run*>(to) = made;
}

/// The same at `Outs` places side by side, whose windows share what is read: columns are neighbors in memory, of stride
/// and dilation 1, and `Taps` knows how many a window has. `at` counts such groups, of which the last of a line may
/// reach past it.
template <int Mode, class Taps, int Outs, class T, class Index>
KILN_FN void pool_line(T* out, const T* in, const pool_sizes& n, Index at) {
  using V = decltype(value_of(*in));
  constexpr int reads = Outs + Taps::cols - 1;
  const pool_sum<Mode, V> how{n};
  Index rest = at;
  const auto next = [&rest](Index extent) {
    const Index q = rest / extent, r = rest - q * extent;
    rest = q;
    return r;
  };
  const int made = static_cast<int>(n.dims[2].out);
  const int first = static_cast<int>(next(static_cast<Index>((made + Outs - 1) / Outs))) * Outs;
  const int row = static_cast<int>(next(static_cast<Index>(n.dims[1].out))),
            depth = static_cast<int>(next(static_cast<Index>(n.dims[0].out)));
  const Index channel = next(static_cast<Index>(n.channels));
  const pool_window planes(n.dims[0], depth), rows(n.dims[1], row);
  const T* plane = in + rest * static_cast<Index>(n.image.in) + channel * static_cast<Index>(n.channel.in);
  T* to = out + rest * static_cast<Index>(n.image.out) + channel * static_cast<Index>(n.channel.out) +
          static_cast<Index>(depth) * static_cast<Index>(n.dims[0].out_step) +
          static_cast<Index>(row) * static_cast<Index>(n.dims[1].out_step) + first;
  const int left = first - static_cast<int>(n.dims[2].before);
  V sum[Outs];
  KILN_UNROLL
  for (int o = 0; o < Outs; ++o) sum[o] = how.none();
  each_tap<window_taps<Taps::planes, Taps::rows, 1>>(n, [&](int i, int j, int) {
    const int p = planes.start + i * static_cast<int>(n.dims[0].dilation),
              r = rows.start + j * static_cast<int>(n.dims[1].dilation);
    const bool line = both(is_within(p, n.dims[0].in), is_within(r, n.dims[1].in));
    const Index offset = static_cast<Index>(clamped(p, n.dims[0].in)) * static_cast<Index>(n.dims[0].in_step) +
                         static_cast<Index>(clamped(r, n.dims[1].in)) * static_cast<Index>(n.dims[1].in_step);
    V x[reads];
    KILN_UNROLL
    for (int c = 0; c < reads; ++c) {
      const bool there = both(line, is_within(left + c, n.dims[2].in));
      const T read = plane[offset + clamped(left + c, n.dims[2].in)];
      x[c] = there ? how.term(value_of(read)) : how.none();
    }
    KILN_UNROLL
    for (int o = 0; o < Outs; ++o) KILN_UNROLL
    for (int c = 0; c < Taps::cols; ++c) sum[o] = how.join(sum[o], x[o + c]);
  });
  KILN_UNROLL
  for (int o = 0; o < Outs; ++o) {
    if (first + o >= made) break;
    const pool_window cols(n.dims[2], first + o);
    const int count =
        n.counts_padding != 0 ? planes.whole * rows.whole * cols.whole : planes.inside * rows.inside * cols.inside;
    to[o] = stored<T>(how.end(sum[o], count));
  }
}

/// One element normalized across channels.
template <class T, class Index> KILN_FN void lrn(T* out, const T* in, const lrn_sizes& n, Index at) {
  using V = decltype(value_of(*in));
  const auto inner = static_cast<Index>(n.inner), channels = static_cast<Index>(n.channels),
             before = static_cast<Index>(n.before), after = static_cast<Index>(n.after);
  const Index c = at / inner % channels;
  const Index low = c > before ? c - before : 0, high = c + after < channels ? c + after : channels - 1;
  V sum = V(0);
  for (Index k = low; k <= high; ++k) {
    const V x = value_of(in[at + (k - c) * inner]);
    sum += x * x;
  }
  out[at] = stored<T>(value_of(in[at]) /
                      kiln::pow(static_cast<V>(n.bias) + static_cast<V>(n.alpha) * sum, static_cast<V>(n.beta)));
}

}  // namespace kiln::gpu

#pragma once
#include "kiln/backend/hip/kernels/index/index.hpp"
#include "kiln/core/math/basic.hpp"

// Sums of a few elements along axes: resampling by tables, and sampling at positions that a grid gives. `at` counts the
// work, `n` are numbers of the call, as in index.hpp.

namespace kiln::gpu {

/// The taps of one axis at one place: elements from the operand's first place to each, and weights.
template <int Count, class V, class Index> struct axis_taps {
  static constexpr int count = Count;
  Index at[Count];
  V weight[Count];
  KILN_FN int taps() const { return Count; }
  KILN_FN Index offset(int k, int*) const { return at[k]; }
  KILN_FN V factor(int k) const { return weight[k]; }
};

/// The same in tables of `taps` lines: positions that count from the end where they are negative, and weights or null.
template <class V, class I, class W, class Index> struct tabled_taps {
  static constexpr int count = 0;  // known to a run alone
  const I* positions;
  const W* weights;
  const resampled_axis& axis;
  Index place;
  KILN_FN int taps() const { return static_cast<int>(axis.taps); }
  KILN_FN Index offset(int k, int* faults) const {
    return static_cast<Index>(checked_index(positions[k * axis.extent + place], axis.from, faults)) *
           static_cast<Index>(axis.step);
  }
  KILN_FN V factor(int k) const { return static_cast<V>(value_of(weights[k * axis.extent + place])); }
};
/// The taps of a place in a table: `Count` of them in registers; 0: they stay there.
template <int Count, class V, class I, class W, class Index>
KILN_FN auto taps_of(const I* positions, const W* weights, const resampled_axis& axis, Index place, int* faults) {
  const tabled_taps<V, I, W, Index> from{positions, weights, axis, place};
  if constexpr (Count == 0) {
    return from;
  } else {
    axis_taps<Count, V, Index> to;
    KILN_UNROLL
    for (int k = 0; k < Count; ++k) to.at[k] = from.offset(k, faults), to.weight[k] = from.factor(k);
    return to;
  }
}

/// Adds to the sums of `Run` neighbors each combination of the axes' taps: `weight` times the product of their weights
/// times what lies there.
template <int Run, class V, class T> KILN_FN void add_taps(V (&sums)[Run], const T* x, V weight, int*) {
  const pack<T, Run> all = *reinterpret_cast<const pack<T, Run>*>(x);
  KILN_UNROLL
  for (int i = 0; i < Run; ++i) sums[i] += weight * static_cast<V>(value_of(all.at[i]));
}
template <int Run, class V, class T, class First, class... Rest>
KILN_FN void add_taps(V (&sums)[Run], const T* x, V weight, int* faults, const First& first, const Rest&... rest) {
  if constexpr (First::count != 0) {
    KILN_UNROLL
    for (int k = 0; k < First::count; ++k)
      add_taps<Run>(sums, x + first.offset(k, faults), weight * first.factor(k), faults, rest...);
  } else {
    for (int k = 0; k < first.taps(); ++k)
      add_taps<Run>(sums, x + first.offset(k, faults), weight * first.factor(k), faults, rest...);
  }
}

/// A sum as an element: those of bytes are cut to whole numbers toward zero, what lies less than 2^-12 below the next
/// one counts as it, and saturate.
template <class T, class V> KILN_FN T sum_as(V sum) {
  if constexpr (is_real<decltype(value_of(T{}))>) {
    return stored<T>(sum);
  } else {
    constexpr V slack = V(1) / 4096, low = is_signed<T> ? -128 : 0, high = is_signed<T> ? 127 : 255;
    const V near = sum < 0 ? kiln::ceil(sum - slack) : kiln::floor(sum + slack);
    return static_cast<T>(near < low ? low : near > high ? high : near);
  }
}

/// Where element `at` of a result of `Dims` dims is read and written, but for what the resampled dims add, and its
/// place along each dim.
template <int Dims, class Index> struct resampled_place {
  Index from = 0, to = 0, place[Dims];
  KILN_FN resampled_place(const resample_sizes& n, Index at) {
    KILN_UNROLL
    for (int d = Dims - 1; d >= 0; --d) {
      const auto extent = static_cast<Index>(n.dims[d].extent);
      const Index rest = d == 0 ? 0 : at / extent;
      place[d] = at - rest * extent;
      from += place[d] * static_cast<Index>(n.dims[d].from);
      to += place[d] * static_cast<Index>(n.dims[d].to);
      at = rest;
    }
  }
};

/// A result of op::resample without weights: `tables(place)` has one tap.
template <int Dims, class T, class Index, class... Tables>
KILN_FN void resample_nearest(T* out, const T* x, const resample_sizes& n, Index at, int* faults, Tables... tables) {
  const resampled_place<Dims, Index> p(n, at);
  out[p.to] = x[(p.from + ... + tables(p).offset(0, faults))];
}

/// Results with weights: of `Run` neighbors, and of `Copies` such runs that are alike but for where they lie.
/// `tables(place)` gives each axis's taps.
template <int Dims, int Run, int Copies, class V, class T, class Index, class... Tables>
KILN_FN void resample(T* out, const T* x, const resample_sizes& n, Index at, int* faults, Tables... tables) {
  const resampled_place<Dims, Index> p(n, at);
  const auto add = [&](const auto&... taps) {
    KILN_UNROLL
    for (int c = 0; c < Copies; ++c) {
      V sums[Run] = {};
      add_taps<Run>(sums, x + (p.from + c * static_cast<Index>(n.copy.from)), V(1), faults, taps...);
      pack<T, Run> made;
      KILN_UNROLL
      for (int i = 0; i < Run; ++i) made.at[i] = sum_as<T>(sums[i]);
      *reinterpret_cast<pack<T, Run>*>(out + (p.to + c * static_cast<Index>(n.copy.to))) = made;
    }
  };
  add(tables(p)...);
}

/// What op::grid_sample has: modes nearest, linear and cubic; padding with zeros, by the border and by reflection.
template <int Mode, int Padding, bool AlignCorners, bool Normalized> struct sampling_rule {
  static constexpr int taps = Mode == 0 ? 1 : Mode == 1 ? 2 : 4;

  /// A position in [0, n - 1], by reflection or at the border; that of NaN is 0.
  template <int Rule, class V> static KILN_FN V inside(V at, i64 n) {
    const V last = static_cast<V>(n - 1);
    if constexpr (Rule == 2) {
      const V low = AlignCorners ? V(0) : V(-.5);
      if (AlignCorners && n == 1) {
        at = low;
      } else {
        const V high = AlignCorners ? last : last + V(.5), span = high - low;
        const V away = kiln::abs(at - low), times = kiln::floor(away / span), rest = away - times * span;
        const V pairs = times * V(.5);
        at = kiln::floor(pairs) == pairs ? low + rest : high - rest;
      }
    }
    return at > V(0) ? at < last ? at : last : V(0);
  }
  template <int Rule, class V, class Index>
  static KILN_FN void place(axis_taps<taps, V, Index>& to, int k, V at, V weight, i64 n, Index step) {
    if constexpr (Rule == 0) weight = at >= V(0) && at <= static_cast<V>(n - 1) ? weight : V(0);
    const i64 whole = static_cast<i64>(inside<Rule>(at, n));
    // beyond 2^24 n - 1 as f32 may be n
    to.at[k] = static_cast<Index>(whole < n ? whole : n - 1) * step;
    to.weight[k] = weight;
  }
  template <class V> static KILN_FN V cubic(V x, bool far) {
    const V a = V(-.75);
    return far ? ((x * a - V(-3.75)) * x + V(-6)) * x - V(-3) : (x * (a + V(2)) - (a + V(3))) * x * x + V(1);
  }
  /// The taps of coordinate `g` along an axis of `n` elements, `step` apart.
  template <class V, class Index> static KILN_FN axis_taps<taps, V, Index> taps_at(V g, i64 n, Index step) {
    axis_taps<taps, V, Index> to;
    const V extent = static_cast<V>(n);
    const V at = !Normalized    ? g
                 : AlignCorners ? (g + V(1)) * (extent - V(1)) / V(2)
                                : ((g + V(1)) * extent - V(1)) / V(2);
    if constexpr (Mode == 0) {
      place<Padding>(to, 0, kiln::round(at), V(1), n, step);
    } else if constexpr (Mode == 1) {
      // the position moves before it is split into weights
      const V moved = Padding == 0 ? at : inside<Padding>(at, n), low = kiln::floor(moved), above = moved - low;
      constexpr int rule = Padding == 0 ? 0 : 1;
      place<rule>(to, 0, low, V(1) - above, n, step), place<rule>(to, 1, low + V(1), above, n, step);
    } else {
      const V low = kiln::floor(at), above = at - low;
      KILN_UNROLL
      for (int k = 0; k < 4; ++k)
        place<Padding>(to, k, low + V(k - 1), cubic(kiln::abs(above - V(k - 1)), k == 0 || k == 3), n, step);
    }
    return to;
  }
};

/// op::grid_sample at one point, for the channels of a group: work counts points, then groups of channels, then images.
template <class Rule, int Axes, class T, class Index>
KILN_FN void grid_sample(T* out, const T* x, const T* grid, const grid_sizes& n, Index at) {
  using V = decltype(value_of(T{}));
  const auto points = static_cast<Index>(n.points), groups = static_cast<Index>(n.groups),
             channels = static_cast<Index>(n.channels), plane = static_cast<Index>(n.lens[0] * n.lens[1] * n.lens[2]);
  const Index rest = at / points, point = at - rest * points, image = rest / groups, group = rest - image * groups;
  const T* const where = grid + (image * points + point) * Axes;
  const auto taps = [&](int back) {  // of the axis so many before the last
    Index step = 1;
    for (int d = 2; d > 2 - back; --d) step *= static_cast<Index>(n.lens[d]);
    return Rule::taps_at(value_of(where[n.from_last != 0 ? back : Axes - 1 - back]), n.lens[2 - back], step);
  };
  const Index each = static_cast<Index>(n.each), first = group * each;
  const auto add = [&](const auto&... all) {
    for (Index c = first; c < first + each && c < channels; ++c) {
      V sums[1] = {};
      add_taps<1>(sums, x + (image * channels + c) * plane, V(1), nullptr, all...);
      out[(image * channels + c) * points + point] = stored<T>(sums[0]);
    }
  };
  if constexpr (Axes == 1)
    add(taps(0));
  else if constexpr (Axes == 2)
    add(taps(1), taps(0));
  else
    add(taps(2), taps(1), taps(0));
}

}  // namespace kiln::gpu

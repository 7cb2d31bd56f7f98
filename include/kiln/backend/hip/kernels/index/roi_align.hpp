#pragma once
#include "kiln/backend/hip/kernels/index/index.hpp"

namespace kiln::gpu {

/// One axis of a region: its first place, a bin's extent, samples of a bin, and the image's extent.
struct region_axis {
  double start, bin;
  i64 samples, extent;
};
/// The pixels around a place, and how far it is past the lower one.
struct region_place {
  i64 low, high;
  double above;
  bool inside;
};

KILN_FN region_axis region_of(double begin, double covered, i64 bins, i64 samples, i64 extent) {
  const double bin = covered / static_cast<double>(bins);
  if (samples <= 0) {
    const i64 most = 4 * extent + 4, whole = bin < static_cast<double>(most) ? static_cast<i64>(bin) : most;
    samples = bin >= static_cast<double>(most) ? most : static_cast<double>(whole) < bin ? whole + 1 : whole;
    if (!(bin > 0)) samples = 0;
  }
  return {begin, bin, samples, extent};
}

KILN_FN region_place place_in_region(const region_axis& a, i64 bin, i64 k) {
  double at =
      a.start + (static_cast<double>(bin) + (static_cast<double>(k) + .5) / static_cast<double>(a.samples)) * a.bin;
  if (a.extent == 0 || !(at >= -1 && at <= static_cast<double>(a.extent))) return {0, 0, 0, false};
  if (at < 0) at = 0;
  const i64 low = static_cast<i64>(at);
  if (low >= a.extent - 1) return {a.extent - 1, a.extent - 1, 0, true};
  return {low, low + 1, at - static_cast<double>(low), true};
}

/// The whole pixels [first, last) of a bin along an axis whose region has these ends.
struct pixel_range {
  i64 first, last;
};
template <class R> KILN_FN i64 floor_of(R v) {
  const R most = R(1e12);
  v = v < most ? v : most;
  v = v > -most ? v : -most;
  const i64 whole = static_cast<i64>(v);
  return static_cast<R>(whole) > v ? whole - 1 : whole;
}
template <class R> KILN_FN pixel_range whole_pixels(R low, R high, R scale, i64 bins, i64 bin, i64 extent) {
  const i64 start = floor_of(low * scale + R(.5)), end = floor_of(high * scale + R(.5));
  const R size = static_cast<R>(end - start + 1 > 1 ? end - start + 1 : 1) / static_cast<R>(bins);
  const auto within = [&](i64 at) { return at < 0 ? 0 : at < extent ? at : extent; };
  return {within(start + floor_of(static_cast<R>(bin) * size)),
          within(start - floor_of(-static_cast<R>(bin + 1) * size))};
}

/// One bin of a region for `Each` channels, which share the places that it reads; op::roi_align. Work counts bins, then
/// groups of channels, then regions.
template <bool HalfPixel, bool Greatest, int Each, class T, class I, class Index>
KILN_FN void roi_align(T* out, const T* x, const T* rois, const I* batches, const roi_sizes& n, Index at, int* faults) {
  using V = decltype(value_of(T{}));
  const auto wide = static_cast<Index>(n.wide), tall = static_cast<Index>(n.tall),
             groups = static_cast<Index>(n.groups), channels = static_cast<Index>(n.channels),
             columns = static_cast<Index>(n.cols), plane = static_cast<Index>(n.rows) * columns;
  const auto taken = [&](Index extent) {
    const Index rest = at / extent, here = at - rest * extent;
    at = rest;
    return here;
  };
  const Index j = taken(wide), i = taken(tall), first = taken(groups) * Each, roi = at;
  const auto corner = [&](int k) {
    return static_cast<double>(value_of(rois[roi * 4 + k])) * n.scale - (HalfPixel ? .5 : 0.);
  };
  const auto covered = [&](int k) {
    const double all = corner(k + 2) - corner(k);
    return !HalfPixel && all < 1 ? 1. : all;
  };
  const Index count = channels - first < Each ? channels - first : Each;
  const T* const images =
      x + (static_cast<Index>(checked_index(batches[roi], n.batch, faults)) * channels + first) * plane;
  V made[Each] = {};
  bool any = false;
  // a NaN stays
  const auto raise = [&](int c, V v) { made[c] = any && (made[c] != made[c] || made[c] > v) ? made[c] : v; };
  // of channels past the last one the first is read again
  const auto value_at = [&](int c, Index pixel) { return value_of(images[(c < count ? c * plane : 0) + pixel]); };
  if (n.samples < 0) {
    using R = decltype(value_of(rois[0]));
    const auto end = [&](int k) { return value_of(rois[roi * 4 + k]); };
    const auto r = whole_pixels<R>(end(1), end(3), static_cast<R>(n.scale), n.tall, i, n.rows),
               s = whole_pixels<R>(end(0), end(2), static_cast<R>(n.scale), n.wide, j, n.cols);
    for (Index row = static_cast<Index>(r.first); row < static_cast<Index>(r.last); ++row)
      for (Index column = static_cast<Index>(s.first); column < static_cast<Index>(s.last); ++column) {
        KILN_UNROLL
        for (int c = 0; c < Each; ++c) raise(c, value_at(c, row * columns + column));
        any = true;
      }
  } else {
    const region_axis down = region_of(corner(1), covered(1), n.tall, n.samples, n.rows),
                      across = region_of(corner(0), covered(0), n.wide, n.samples, n.cols);
    for (i64 r = 0; r < down.samples; ++r) {
      const region_place p = place_in_region(down, i, r);
      for (i64 s = 0; s < across.samples; ++s) {
        const region_place q = place_in_region(across, j, s);
        if (!p.inside || !q.inside) {
          KILN_UNROLL
          for (int c = 0; c < Each; ++c)
            if (Greatest) raise(c, V(0));
          any = true;
          continue;
        }
        const double weights[] = {(1 - p.above) * (1 - q.above), (1 - p.above) * q.above, p.above * (1 - q.above),
                                  p.above * q.above};
        const i64 lines[] = {p.low, p.low, p.high, p.high}, places[] = {q.low, q.high, q.low, q.high};
        KILN_UNROLL
        for (int k = 0; k < 4; ++k) {
          const Index pixel = static_cast<Index>(lines[k]) * columns + static_cast<Index>(places[k]);
          KILN_UNROLL
          for (int c = 0; c < Each; ++c) {
            const V v = static_cast<V>(weights[k]) * value_at(c, pixel);
            if (Greatest)
              raise(c, v);
            else
              made[c] += v;
          }
          any = true;
        }
      }
    }
    const i64 samples = down.samples * across.samples;
    KILN_UNROLL
    for (int c = 0; c < Each; ++c)
      if (!Greatest && samples > 0) made[c] /= static_cast<V>(samples);
  }
  T* const to = out + ((roi * channels + first) * tall + i) * wide + j;
  KILN_UNROLL
  for (int c = 0; c < Each; ++c)
    if (c < count) to[c * tall * wide] = stored<T>(made[c]);
}

}  // namespace kiln::gpu

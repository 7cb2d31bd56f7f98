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
  if (!(at >= -1 && at <= static_cast<double>(a.extent))) return {0, 0, 0, false};
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

/// One bin of a region; op::roi_align.
template <bool HalfPixel, bool Greatest, class T, class I>
KILN_FN void roi_align(T* out, const T* x, const T* rois, const I* batches, const roi_sizes& n, i64 at, int* faults) {
  const i64 channels = n.channels, rows = n.rows, columns = n.cols, tall = n.tall, wide = n.wide;
  const i64 j = at % wide, i = at / wide % tall, c = at / (wide * tall) % channels, roi = at / (wide * tall * channels);
  const auto corner = [&](int k) {
    return static_cast<double>(value_of(rois[roi * 4 + k])) * n.scale - (HalfPixel ? .5 : 0.);
  };
  const auto covered = [&](int k) {
    const double all = corner(k + 2) - corner(k);
    return !HalfPixel && all < 1 ? 1. : all;
  };
  const i64 b = checked_index(batches[roi], n.batch, faults);
  if (n.samples < 0) {
    using R = decltype(value_of(rois[0]));
    const auto end = [&](int k) { return value_of(rois[roi * 4 + k]); };
    const auto r = whole_pixels<R>(end(1), end(3), static_cast<R>(n.scale), tall, i, rows),
               s = whole_pixels<R>(end(0), end(2), static_cast<R>(n.scale), wide, j, columns);
    double best = 0;
    bool any = false;
    for (i64 row = r.first; row < r.last; ++row)
      for (i64 column = s.first; column < s.last; ++column) {
        const double v = static_cast<double>(value_of(x[((b * channels + c) * rows + row) * columns + column]));
        best = any && (best != best || best > v) ? best : v;
        any = true;
      }
    out[at] = stored<T>(best);
    return;
  }
  const region_axis down = region_of(corner(1), covered(1), tall, n.samples, rows),
                    across = region_of(corner(0), covered(0), wide, n.samples, columns);
  const T* plane = x + (b * channels + c) * rows * columns;
  double sum = 0, best = 0;
  bool any = false;
  const auto raise = [&](double v) {
    best = any && best > v ? best : v;
    any = true;
  };
  for (i64 r = 0; r < down.samples; ++r)
    for (i64 s = 0; s < across.samples; ++s) {
      const region_place p = place_in_region(down, i, r), q = place_in_region(across, j, s);
      if (!p.inside || !q.inside) {
        raise(0);
        continue;
      }
      const auto weighted = [&](i64 row, i64 column, double weight) {
        const double v = weight * static_cast<double>(value_of(plane[row * columns + column]));
        sum += v;
        raise(v);
      };
      weighted(p.low, q.low, (1 - p.above) * (1 - q.above));
      weighted(p.low, q.high, (1 - p.above) * q.above);
      weighted(p.high, q.low, p.above * (1 - q.above));
      weighted(p.high, q.high, p.above * q.above);
    }
  const i64 count = down.samples * across.samples;
  out[at] = stored<T>(Greatest ? best : count > 0 ? sum / static_cast<double>(count) : 0.);
}

}  // namespace kiln::gpu

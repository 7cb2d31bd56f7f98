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

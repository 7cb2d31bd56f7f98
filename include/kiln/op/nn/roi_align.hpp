#pragma once
#include <utility>

#include "kiln/core/math.hpp"
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// Regions of interest pooled to a fixed size (He et al. 2017): x[batch, channels, h, w], rois[n, 4] as corners (x1,
/// y1, x2, y2), batch indices[n] give [n, channels, height, width]. Each bin holds the mean of samples between the
/// pixels, or the greatest of their weighted pixels; `samples` of 0 takes as many along an axis as the bin covers
/// pixels. With `samples` of -1 a bin holds its greatest whole pixel, or 0 where it has none (Girshick 2015).
struct roi_align {
  std::int64_t height = 1, width = 1, samples = 0;
  float scale = 1;
  bool half_pixel = true;
  bool greatest = false;
  static constexpr auto types = dtypes::floats;

  void agree(extent_agreement& extents) const {
    if (extents.operands() != 3 || extents.rank(1) != 2 || extents.rank(2) != 1) return;
    extents.want(1, 1, 4);
    extents.agree(2, 0, 1, 0);
  }
  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 3) return detail::wrong_operand_count(3, in.size());
    if (!types.contains(in[0].type)) return detail::wrong_operand_type(in[0].type);
    if (in[0].rank() != 4 || in[1].rank() != 2 || !(in[1].lens[1] == dimension(4)))
      return fault::of(errc::shape_mismatch, "the input has rank 4 and the rois are [n, 4]", in[0].lens, in[1].lens);
    if (!(in[2].lens == dims{in[1].lens[0]}))
      return fault::of(errc::shape_mismatch, "there is a batch index for each roi", in[1].lens[0], in[2].lens);
    if (in[1].type != in[0].type)
      return fault::of(errc::shape_mismatch, "rois have the input's dtype", in[0].type, in[1].type);
    if (!is_integer(in[2].type)) return detail::wrong_index_type(in[2].type);
    if (height < 1 || width < 1 || samples < -1)
      return fault::of(errc::invalid_argument, "the pooled size is positive", height, width);
    if (samples == -1 && !greatest)
      return fault::of(errc::invalid_argument, "of whole pixels the greatest is taken", true, greatest);
    return shape{in[0].type, {in[1].lens[0], in[0].lens[1], height, width}};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto x = e.template in<T>(0), rois = e.template in<T>(1);
    const auto batches = e.template in<std::int64_t>(2);
    const auto out = e.template out<T>();
    const std::int64_t channels = x.lens[1], h = x.lens[2], w = x.lens[3];
    for (std::int64_t n = 0; n < rois.lens[0]; ++n) {
      const std::int64_t b = e.index(batches[n], x.lens[0]);
      const auto [rows, columns] = axes_of(rois.data + n * 4, h, w);
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t i = 0; i < height; ++i)
          for (std::int64_t j = 0; j < width; ++j)
            out[((n * channels + c) * height + i) * width + j] =
                static_cast<T>(samples < 0 ? greatest_pixel<T>(x.data + (b * channels + c) * h * w, rows, columns, i, j)
                                           : pooled(x.data + (b * channels + c) * h * w, rows, columns, i, j));
    }
  }

  /// The bins along one axis of a region: where the first starts, their size, the samples of each, and the image's
  /// pixels.
  struct axis {
    double start, bin;
    std::int64_t samples, extent;
  };
  /// The pixels around a sample and how far above the lower one it lies.
  struct between {
    std::int64_t low = 0, high = 0;
    double above = 0;
    bool inside = true;
  };
  /// The rows and columns of the region with these corners in an image of h times w pixels.
  template <class T> constexpr std::pair<axis, axis> axes_of(const T* corners, std::int64_t h, std::int64_t w) const {
    if (samples < 0)
      return {whole_pixels<T>(corners[1], corners[3], height, h), whole_pixels<T>(corners[0], corners[2], width, w)};
    const double shift = half_pixel ? .5 : 0;
    const auto corner = [&](std::int64_t k) { return static_cast<double>(corners[k]) * double(scale) - shift; };
    double tall = corner(3) - corner(1), wide = corner(2) - corner(0);
    if (!half_pixel) {
      tall = tall < 1 ? 1 : tall;
      wide = wide < 1 ? 1 : wide;
    }
    return {{corner(1), tall / double(height), taken(tall / double(height), h), h},
            {corner(0), wide / double(width), taken(wide / double(width), w), w}};
  }
  /// The whole pixels [first, last) of a bin along an axis of an image of T.
  template <class T> static constexpr std::pair<std::int64_t, std::int64_t> pixels(const axis& a, std::int64_t bin) {
    using R = real<T>;
    const auto within = [&](R at) {
      const double pixel = static_cast<double>(at) + a.start;
      if (pixel < 0) return std::int64_t{0};
      return pixel < static_cast<double>(a.extent) ? static_cast<std::int64_t>(pixel) : a.extent;
    };
    const R size = static_cast<R>(a.bin);
    return {within(kiln::floor(static_cast<R>(bin) * size)), within(kiln::ceil(static_cast<R>(bin + 1) * size))};
  }
  /// Sample k of a bin.
  static constexpr between neighbors(const axis& a, std::int64_t bin, std::int64_t k) {
    double at =
        a.start + (static_cast<double>(bin) + (static_cast<double>(k) + .5) / static_cast<double>(a.samples)) * a.bin;
    if (a.extent == 0 || !(at >= -1 && at <= static_cast<double>(a.extent))) return {0, 0, 0, false};
    if (at < 0) at = 0;
    const auto low = static_cast<std::int64_t>(at);
    if (low >= a.extent - 1) return {a.extent - 1, a.extent - 1, 0, true};
    return {low, low + 1, at - static_cast<double>(low), true};
  }

 private:
  // Where bins begin among whole pixels depends on the precision.
  template <class T> using real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  template <class T> constexpr axis whole_pixels(T low, T high, std::int64_t bins, std::int64_t extent) const {
    using R = real<T>;
    const auto pixel = [&](T corner) { return kiln::floor(static_cast<R>(corner) * static_cast<R>(scale) + R(.5)); };
    const R start = pixel(low), size = pixel(high) - start + R(1);
    return {start, (size > R(1) ? size : R(1)) / static_cast<R>(bins), -1, extent};
  }
  template <class T>
  static constexpr double greatest_pixel(const T* plane, const axis& rows, const axis& columns, std::int64_t i,
                                         std::int64_t j) {
    const auto [top, bottom] = pixels<T>(rows, i);
    const auto [left, right] = pixels<T>(columns, j);
    double best = 0;
    bool any = false;
    for (std::int64_t r = top; r < bottom; ++r)
      for (std::int64_t c = left; c < right; ++c) {
        const auto v = static_cast<double>(plane[r * columns.extent + c]);
        best = any && (best != best || best > v) ? best : v;
        any = true;
      }
    return best;
  }
  constexpr std::int64_t taken(double covered, std::int64_t extent) const {
    if (samples > 0) return samples;
    const double n = kiln::ceil(covered);
    return n >= 1 ? (n < static_cast<double>(4 * extent + 4) ? static_cast<std::int64_t>(n) : 4 * extent + 4) : 0;
  }
  template <class T>
  constexpr double pooled(const T* plane, const axis& rows, const axis& columns, std::int64_t i, std::int64_t j) const {
    double sum = 0, best = 0;
    bool any = false;
    for (std::int64_t a = 0; a < rows.samples; ++a)
      for (std::int64_t b = 0; b < columns.samples; ++b) {
        const between y = neighbors(rows, i, a), x = neighbors(columns, j, b);
        if (!y.inside || !x.inside) {
          best = any && (best != best || best > 0) ? best : 0;  // NaN stays
          any = true;
          continue;
        }
        const auto at = [&](std::int64_t r, std::int64_t c) {
          return static_cast<double>(plane[r * columns.extent + c]);
        };
        const double corner[] = {(1 - y.above) * (1 - x.above) * at(y.low, x.low),
                                 (1 - y.above) * x.above * at(y.low, x.high),
                                 y.above * (1 - x.above) * at(y.high, x.low), y.above * x.above * at(y.high, x.high)};
        for (const double v : corner) {
          sum += v;
          best = any && (best != best || best > v) ? best : v;
          any = true;
        }
      }
    const std::int64_t n = rows.samples * columns.samples;
    return greatest ? best : n > 0 ? sum / static_cast<double>(n) : 0;
  }
};

}  // namespace kiln::op

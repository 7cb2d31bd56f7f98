#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/index/common.hpp"

namespace kiln::op {

enum class sampling_mode : std::uint8_t { nearest, linear, cubic };
constexpr std::string_view to_string(sampling_mode m) { return enumerator_name(m, {"nearest", "linear", "cubic"}); }

enum class sampling_padding : std::uint8_t { zeros, border, reflection };
constexpr std::string_view to_string(sampling_padding p) {
  return enumerator_name(p, {"zeros", "border", "reflection"});
}

/// x[n, c, spatial...] between its elements (ONNX GridSample): grid[n, dims..., axes] has a position for each element
/// of the result [n, c, dims...], one to three coordinates of it. Where `normalized`, they run from -1 to 1 across each
/// extent, the last spatial dim's first: from the first element's middle to the last one's where `align_corners`, else
/// from edge to edge. Otherwise they count elements, the first spatial dim's first. Cubic weights are those with a =
/// -0.75.
struct grid_sample {
  sampling_mode mode = sampling_mode::linear;
  sampling_padding padding = sampling_padding::zeros;
  bool align_corners = false;
  bool normalized = true;
  static constexpr auto types = dtypes::floats;

  void agree(extent_agreement& extents) const {
    if (extents.operands() == 2 && extents.rank(0) == extents.rank(1)) extents.agree(0, 0, 1, 0);
  }
  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 2) return detail::wrong_operand_count(2, in.size());
    const shape &x = in[0], &grid = in[1];
    if (!types.contains(x.type)) return detail::wrong_operand_type(x.type);
    if (grid.type != x.type)
      return fault::of(errc::shape_mismatch, "the grid has the input's dtype", x.type, grid.type);
    if (x.rank() < 3 || x.rank() > 5)
      return fault::of(errc::shape_mismatch, "the input has one to three spatial dims", "rank 3 to 5", x.rank());
    if (grid.rank() < 2 || grid.rank() + 1 > max_rank)
      return fault::of(errc::shape_mismatch, "the grid is [n, dims..., axes]", "rank 2 to 7", grid.rank());
    if (!(grid.lens.back() == dimension(x.rank() - 2)))
      return fault::of(errc::shape_mismatch, "the grid has a coordinate for each spatial dim", x.rank() - 2,
                       grid.lens.back());
    if (!(grid.lens[0] == x.lens[0]))
      return fault::of(errc::shape_mismatch, "the grid has the input's batch", x.lens[0], grid.lens[0]);
    shape out{x.type, {x.lens[0], x.lens[1]}};
    for (std::size_t d = 1; d + 1 < grid.rank(); ++d) out.lens.push_back(grid.lens[d]);
    return out;
  }

  /// How many elements a position has weights of along one axis.
  constexpr std::int64_t taps() const {
    return mode == sampling_mode::nearest ? 1 : mode == sampling_mode::linear ? 2 : 4;
  }
  /// These elements, of a position or of a vector of positions.
  template <class T> struct axis_taps {
    std::int64_t count = 1;
    T at[4] = {};                 ///< whole numbers in the extent, or it itself where T has no n - 1
    T weight[4] = {splat<T>(1)};  ///< 0 outside the extent, where padding is zeros
  };
  /// Those of coordinate `g` along an axis of `n` elements, 1 or more.
  template <class T> constexpr axis_taps<T> taps_at(T g, std::int64_t n) const {
    axis_taps<T> taps{this->taps()};
    const T one = splat<T>(1), two = splat<T>(2), extent = splat<T>(n);
    const T at = !normalized ? g : align_corners ? (g + one) * (extent - one) / two : ((g + one) * extent - one) / two;
    if (mode == sampling_mode::nearest) {
      place(taps, 0, kiln::round(at), n, padding);
      return taps;
    }
    if (mode == sampling_mode::linear) {
      // the position moves before it is split into weights
      const T moved = padding == sampling_padding::zeros ? at : inside(at, n, padding);
      const T low = kiln::floor(moved), above = moved - low;
      const auto rule = padding == sampling_padding::zeros ? padding : sampling_padding::border;
      taps.weight[0] = one - above, taps.weight[1] = above;
      place(taps, 0, low, n, rule), place(taps, 1, low + one, n, rule);
      return taps;
    }
    const T low = kiln::floor(at), above = at - low;
    for (int k = 0; k < 4; ++k) {
      taps.weight[k] = cubic(kiln::abs(above - splat<T>(k - 1)), k == 0 || k == 3);
      place(taps, k, low + splat<T>(k - 1), n, padding);
    }
    return taps;
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto x = e.template in<T>(0), grid = e.template in<T>(1);
    const auto y = e.template out<T>();
    if (y.size() == 0) return;
    const std::size_t axes = x.rank() - 2;
    std::int64_t points = 1, plane = 1;
    for (std::size_t d = 2; d < y.rank(); ++d) points *= y.lens[d];
    for (std::size_t d = 2; d < x.rank(); ++d) plane *= x.lens[d];
    for (std::int64_t i = 0, channels = x.lens[1]; i < x.lens[0] * points; ++i) {
      axis_taps<T> taps[3] = {};
      for (std::size_t d = 0; d < axes && plane > 0; ++d)
        taps[3 - axes + d] = taps_at(grid[i * static_cast<std::int64_t>(axes) + coordinate(d, axes)], x.lens[d + 2]);
      const std::int64_t deep = axes > 2 ? x.lens[2] : 1, high = axes > 1 ? x.lens[axes] : 1, wide = x.lens[axes + 1];
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::int64_t image = i / points * channels + c;
        T sum = 0;
        for (std::int64_t a = 0; a < taps[0].count && plane > 0; ++a)
          for (std::int64_t b = 0; b < taps[1].count; ++b)
            for (std::int64_t k = 0; k < taps[2].count; ++k)
              sum += taps[0].weight[a] * taps[1].weight[b] * taps[2].weight[k] *
                     x[image * plane + (place_of(taps[0], a, deep) * high + place_of(taps[1], b, high)) * wide +
                       place_of(taps[2], k, wide)];
        y[image * points + i % points] = sum;
      }
    }
  }

  /// Which number of a position is that of spatial dim d.
  constexpr std::int64_t coordinate(std::size_t d, std::size_t axes) const {
    return static_cast<std::int64_t>(normalized ? axes - 1 - d : d);
  }

 private:
  template <class T> static constexpr std::int64_t place_of(const axis_taps<T>& taps, std::int64_t k, std::int64_t n) {
    const auto at = static_cast<std::int64_t>(taps.at[k]);
    return at < n ? at : n - 1;  // beyond 2^24 n - 1 as f32 may be n
  }
  template <class T> static constexpr T cubic(T x, bool far) {
    const T a = splat<T>(-0.75);
    return far ? ((x * a - splat<T>(-3.75)) * x + splat<T>(-6)) * x - splat<T>(-3)
               : (x * (a + splat<T>(2)) - (a + splat<T>(3))) * x * x + splat<T>(1);
  }
  // A position in [0, n - 1], by reflection or at the border; that of NaN is 0.
  template <class T> constexpr T inside(T at, std::int64_t n, sampling_padding rule) const {
    const T zero = splat<T>(0), half = splat<T>(.5), last = splat<T>(n - 1);
    if (rule == sampling_padding::reflection) {
      const T low = align_corners ? zero : splat<T>(-.5);
      if (align_corners && n == 1) {
        at = low;
      } else {
        const T high = align_corners ? last : last + half, span = high - low;
        const T away = kiln::abs(at - low), times = kiln::floor(away / span), rest = away - times * span;
        const T pairs = times * half;
        at = select(kiln::floor(pairs) == pairs, low + rest, high - rest);
      }
    }
    return select(at > zero, select(at < last, at, last), zero);
  }
  template <class T>
  constexpr void place(axis_taps<T>& taps, int k, T at, std::int64_t n, sampling_padding rule) const {
    const T zero = splat<T>(0);
    if (rule == sampling_padding::zeros)
      taps.weight[k] = select(kiln::logical_and(at >= zero, at <= splat<T>(n - 1)), taps.weight[k], zero);
    taps.at[k] = inside(at, n, rule);
  }
};

}  // namespace kiln::op

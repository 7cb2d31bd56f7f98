#pragma once
#include "kiln/op/view_map.hpp"

namespace kiln::op {

/// Elements start, start + step, … before end of each of the axes (none: the first ones) (ONNX Slice): negative
/// positions count from the end, positions outside are clamped, a negative step walks backwards, no steps means 1.
struct slice {
  ints axes{};
  dims starts{};
  dims ends{};
  ints steps{};

  constexpr result<layout> map(const layout& in) const {
    const std::size_t n = starts.size();
    if (ends.size() != n) return fault::of(errc::invalid_argument, "as many ends as starts", n, ends.size());
    if (!axes.empty() && axes.size() != n)
      return fault::of(errc::invalid_argument, "as many axes as starts", n, axes.size());
    if (!steps.empty() && steps.size() != n)
      return fault::of(errc::invalid_argument, "as many steps as starts", n, steps.size());
    if (n > in.lens.size()) return fault::of(errc::shape_mismatch, "at most as many axes as dims", in.lens.size(), n);
    const auto named = detail::named_axes(axes, in.lens.size());
    if (!named) return named.why();
    layout out = in;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = axes.empty() ? i : static_cast<std::size_t>(normal_axis(axes[i], in.lens.size()));
      if (!steps.empty() && steps[i] == 0) return fault::of(errc::invalid_argument, "a step is not 0");
      const std::int64_t step = steps.empty() ? 1 : bounded_step(steps[i], in.lens[at]);
      const range r = within(starts[i], ends[i], step, in.lens[at]);
      out.lens[at] = r.count;
      out.offset += r.start * in.strides[at];
      out.strides[at] = in.strides[at] * step;
    }
    return out;
  }
  /// Axes from the front and ascending, steps written out; positions that are known are clamped to the extent, and axes
  /// taken whole are left out.
  constexpr slice normalized(std::span<const shape> in) const {
    slice n;
    if (in.empty()) return *this;
    for (std::size_t d = 0; d < in[0].rank(); ++d)
      for (std::size_t i = 0; i < starts.size(); ++i) {
        const auto at = axes.empty() ? static_cast<std::int64_t>(i) : normal_axis(axes[i], in[0].rank());
        if (at != static_cast<std::int64_t>(d)) continue;
        const dimension extent = in[0].lens[d];
        const std::int64_t step = steps.empty() ? 1 : steps[i];
        dimension start = starts[i], end = ends[i];
        if (step > 0) {
          // an expression stands for itself: written out it would grow with every normalization
          const dimension from = position(start, extent, 0, extent), to = position(end, extent, 0, extent);
          if (from.is_constant() || from == extent) start = from;
          if (to.is_constant() || to == extent) end = to;
          if (step == 1 && start == dimension(0) && end == extent) continue;
        }
        n.axes.push_back(at);
        n.starts.push_back(start);
        n.ends.push_back(end);
        n.steps.push_back(step);
      }
    return n;
  }

 private:
  struct range {
    dimension start = 0, count = 0;
  };

  // Steps longer than the extent all take one element; as they stand, sums with them overflow.
  static constexpr std::int64_t bounded_step(std::int64_t step, dimension extent) {
    const std::int64_t longest = extent.max() > 1 ? extent.max() : 1;
    return step > longest ? longest : step < -longest ? -longest : step;
  }
  // A position from the front, clamped to [low, high]. Constants far outside are settled first: sums with them
  // overflow.
  static constexpr dimension position(dimension p, dimension extent, dimension low, dimension high) {
    if (p.min() >= extent.max()) return high;
    if (p.max() < 0 && p.max() < -extent.max()) return low;
    if (p.max() < 0)
      p += extent;
    else if (p.min() < 0)
      p += extent * smaller(1, larger(0, -p));  // counts from the end where negative
    return larger(low, smaller(p, high));
  }
  static constexpr range within(dimension start, dimension end, std::int64_t step, dimension extent) {
    if (extent == dimension(0)) return {};
    if (step > 0) {
      const dimension from = position(start, extent, 0, extent), to = position(end, extent, 0, extent);
      return {from, (larger(0, to - from) + (step - 1)) / step};
    }
    // an extent of 0 has no first element to clamp to; only what lies before it needs the clamp
    const dimension last = extent - 1, first = extent.min() > 0 ? 0 : start.min() < -1 ? smaller(0, last) : -1;
    const dimension from = position(start, extent, first, last), to = position(end, extent, -1, last);
    return {from, (larger(0, from - to) + (-step - 1)) / -step};
  }
};

}  // namespace kiln::op

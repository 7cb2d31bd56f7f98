#pragma once
#include "kiln/core/math/basic.hpp"
#include "kiln/core/math/exp.hpp"
#include "kiln/core/math/log.hpp"

namespace kiln {

/// Triangular filters over the bins of a spectrum, spaced evenly on the mel scale (ONNX MelWeightMatrix). Filter m
/// begins at corner m, is 1 at corner m + 1 and ends at corner m + 2.
class mel_filters {
 public:
  using i64 = long long;

  /// `count` filters between two frequencies, in Hz, of a signal of `rate` samples a second, of which `length` are
  /// transformed.
  KILN_FN constexpr mel_filters(double rate, double lowest, double highest, i64 length, i64 count)
      : low_(mel(lowest)),
        step_((mel(highest) - low_) / (static_cast<double>(count) + 2)),
        rate_(rate),
        length_(length),
        count_(count) {}

  KILN_FN constexpr i64 bins() const { return length_ / 2 + 1; }
  /// Whether all corners lie in ascending order within the spectrum.
  KILN_FN constexpr bool fit() const { return step_ >= 0 && inside(place(0)) && inside(place(count_ + 1)); }
  /// The bin of a corner in [0, count + 2).
  KILN_FN constexpr i64 corner(i64 k) const { return static_cast<i64>(place(k)); }

  /// The weight of a bin in filter m.
  KILN_FN constexpr float weight(i64 bin, i64 m) const {
    const i64 from = corner(m), top = corner(m + 1), to = corner(m + 2);
    return bin == top                ? 1.0f
           : from < bin && bin < top ? share(bin - from, top - from)
           : top < bin && bin < to   ? share(to - bin, to - top)
                                     : 0.0f;
  }

  /// Writes the weights of bins [first, last) as [last - first, count]. Between two corners two filters alone have
  /// weights, the one that rises and the one that falls, and corners are found as they are met.
  constexpr void write(i64 first, i64 last, float* row) const {
    constexpr i64 near = 16;  // bins whose zeros are in L1 when weights are put among them
    if (count_ <= 0) return;
    const auto put = [&](i64 m, float weight) {
      if (m >= 0 && m < count_) row[m] = weight;
    };
    const auto bin_of = [&](i64 k) { return k < corners() ? corner(k) : bins(); };
    i64 next = corners_before(first);
    i64 from = next > 0 ? corner(next - 1) : 0, at = bin_of(next);  // the bins of the corners around
    for (i64 bin = first; bin < last; ++bin, row += count_) {
      if ((bin - first) % near == 0)
        for (i64 k = 0, zeros = (last - bin < near ? last - bin : near) * count_; k < zeros; ++k) row[k] = 0;
      for (; next < corners() && at == bin; at = bin_of(next)) {
        from = at;
        put(next++ - 1, 1);
      }
      if (next == 0 || next == corners() || from == bin) continue;
      put(next - 1, share(bin - from, at - from));
      put(next - 2, share(at - bin, at - from));
    }
  }

 private:
  // The factor of the scale cancels out.
  KILN_FN static constexpr double mel(double hertz) { return log(hertz / 700 + 1); }
  KILN_FN static constexpr float share(i64 part, i64 whole) {
    return static_cast<float>(static_cast<double>(part) / static_cast<double>(whole));
  }
  KILN_FN constexpr double place(i64 k) const {
    const double hertz = 700 * (exp(low_ + static_cast<double>(k) * step_) - 1);
    return floor(hertz * (static_cast<double>(length_) + 1) / rate_);
  }
  KILN_FN constexpr bool inside(double bin) const { return bin >= 0 && bin <= static_cast<double>(bins()); }
  constexpr i64 corners() const { return count_ + 2; }
  // Corners below a bin.
  constexpr i64 corners_before(i64 bin) const {
    i64 low = 0, high = corners();
    while (low < high) {
      const i64 middle = (low + high) / 2;
      const bool below = corner(middle) < bin;
      (below ? low : high) = below ? middle + 1 : middle;
    }
    return low;
  }

  double low_, step_, rate_;
  i64 length_, count_;
};

}  // namespace kiln

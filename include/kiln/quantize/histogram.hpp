#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kiln/op/quant/range.hpp"

namespace kiln::quantize {

/// Counts of values in bins of equal width, whose number grows with the values: bins are added beyond the ends, and
/// where they become more than `most_bins`, neighbors are merged.
class histogram {
 public:
  /// Of values, on (-t, t), where t is the greatest magnitude; or of magnitudes, from the least one of the first
  /// sample to the greatest.
  enum class domain { values, magnitudes };

  histogram() = default;
  histogram(std::size_t bins, domain of);

  /// Makes room for the values of one sample: their range, and their least magnitude. Precedes `add`.
  void widen(range sample, double least_magnitude);
  /// Counts the finite ones among the values; those of magnitudes below the first bin count there.
  void add(std::span<const float> values) { count(values); }
  void add(std::span<const double> values) { count(values); }

  std::span<const std::uint64_t> counts() const { return counts_; }
  /// Where bin i begins; i = number of bins: where the last one ends.
  double edge(std::size_t i) const { return i == counts_.size() ? last_ : static_cast<double>(i) * width_ + first_; }
  double middle(std::size_t i) const { return (edge(i) + edge(i + 1)) * 0.5; }
  std::uint64_t total() const;
  std::size_t most_bins() const { return most_bins_; }

 private:
  void begin(double first, double last);
  void widen_values(double reach);
  void widen_magnitudes(double greatest);
  void merge_around_zero();
  void merge_pairs();
  template <class T> void count(std::span<const T> values);

  domain of_ = domain::values;
  std::vector<std::uint64_t> counts_;
  std::size_t most_bins_ = 0;
  double first_ = -0.5, last_ = 0.5, width_ = 0;  // of zeros alone, as long as nothing else was seen
  bool begun_ = false;
};

}  // namespace kiln::quantize

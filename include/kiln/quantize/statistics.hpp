#pragma once
#include <optional>

#include "kiln/quantize/histogram.hpp"
#include "kiln/runtime/tensor.hpp"

namespace kiln::quantize {

/// What `tensor_statistics` keeps of a tensor.
struct statistics_options {
  std::size_t bins = 0;  ///< of a histogram, before it grows; 0: none
  histogram::domain of = histogram::domain::values;
  std::optional<std::int64_t> axis = {};  ///< ranges of the channels along this axis too
  bool moving_average = false;            ///< of the batches' ranges, and the mean of the ranges within a batch
  double averaging_constant = 0.01;       ///< weight of the newest batch
  bool symmetric = false;                 ///< ranges are mirrored at 0
};

/// The range of samples that arrive one by one: their extremes, or a moving average over batches of samples.
class range_tracker {
 public:
  void add(range sample);
  /// Ends a batch of samples: only a moving average tells batches from each other.
  void end_batch(const statistics_options& o);
  /// The range so far, the batch that has not ended included; 0 to 0 before the first sample.
  range value(const statistics_options& o) const;

 private:
  range total_, extremes_, sums_;
  std::int64_t batches_ = 0, samples_ = 0;
};

/// What was counted of some values.
struct value_counts {
  std::int64_t finite = 0, nans = 0, infinities = 0;
  double low = 0, high = 0;    ///< of the finite ones
  double least_magnitude = 0;  ///< of the finite ones
  double sum = 0, sum_of_squares = 0;

  void add(const value_counts& more);
};

/// Counts the values of a tensor of any float type, row-major or with strides.
value_counts count_values(const tensor& t);

/// Statistics of one tensor over any number of samples, whose extents may differ, in memory that does not grow with
/// them. NaN and infinities are counted and else left out.
class tensor_statistics {
 public:
  explicit tensor_statistics(const statistics_options& o = {});

  /// Adds a sample: floats of any type and strides. Other types are an `unsupported` error, another number of channels
  /// than before a `shape_mismatch`.
  void add(const tensor& t);
  /// Ends a batch of samples (see `range_tracker`).
  void end_batch();

  const value_counts& counts() const { return counts_; }
  /// The range of everything, or the moving average.
  range whole() const { return whole_.value(options_); }
  /// The same for each channel; empty without an axis.
  std::vector<range> channels() const;
  const histogram& values() const { return histogram_; }
  /// Of the finite values; 0 for none.
  double mean() const;
  double deviation() const;

 private:
  void add_channels(const tensor& dense);

  statistics_options options_;
  value_counts counts_;
  range_tracker whole_;
  std::vector<range_tracker> channels_;
  histogram histogram_;
};

}  // namespace kiln::quantize

#pragma once
#include <optional>
#include <string_view>

#include "kiln/quantize/statistics.hpp"

namespace kiln::quantize {

/// How a tensor's range is chosen from the values that samples gave it.
enum class calibration_method : std::uint8_t {
  min_max,       ///< the extremes, or a moving average of them
  entropy,       ///< the range whose quantized histogram diverges least from the whole one (Kullback-Leibler)
  percentile,    ///< what so many percent of the values lie in
  distribution,  ///< mean and standard deviation, for floats of eight bits
};

/// How the values of a float of eight bits are taken to be distributed: as the tensor's, or as third powers of a normal
/// distribution.
enum class float8_scenario : std::uint8_t { same, p3 };

/// All of them, in order.
constexpr calibration_method calibration_methods[] = {calibration_method::min_max, calibration_method::entropy,
                                                      calibration_method::percentile, calibration_method::distribution};
constexpr std::string_view to_string(calibration_method m) {
  constexpr std::string_view names[] = {"min_max", "entropy", "percentile", "distribution"};
  return names[static_cast<unsigned>(m)];
}

/// The method of that name; others are an `invalid_argument` error that lists them.
calibration_method method_named(std::string_view name);

/// How ranges are chosen. Fields that a method does not mention are not its own.
struct calibration_options {
  calibration_method method = calibration_method::min_max;
  /// Ranges stand symmetrically around 0. Unset: `percentile` alone, which then counts magnitudes.
  std::optional<bool> symmetric = {};
  /// `min_max`: the mean over a batch of samples, then a moving average over batches with this weight of the newest.
  bool moving_average = false;
  double averaging_constant = 0.01;
  /// `min_max`: ranges of each channel along the axis too.
  bool per_channel = false;
  std::int64_t axis = 1;
  /// Bins of the histogram; 0: 128 of `entropy`, else 2048. `distribution` wants 512 at least.
  std::size_t bins = 0;
  /// `entropy`: bins after quantization.
  std::size_t quantized_bins = 128;
  /// `percentile`: from 0 to 100.
  double percentile = 99.999;
  float8_scenario scenario = float8_scenario::same;
  /// Infinite values, as masks have them, are left out; otherwise they are an error, as NaN always is.
  bool ignore_infinities = false;

  bool mirrors() const { return symmetric.value_or(method == calibration_method::percentile); }
  std::size_t bins_at_first() const { return bins ? bins : method == calibration_method::entropy ? 128 : 2048; }
};

/// Mean and standard deviation.
struct moments {
  double mean = 0, deviation = 0;
  friend bool operator==(moments, moments) = default;
};

/// What calibration says of a tensor.
struct tensor_range {
  range whole = {};
  std::vector<range> channels = {};  ///< along `axis`; empty: the tensor has one range
  std::int64_t axis = 1;
  std::optional<moments> distribution = {};  ///< `calibration_method::distribution` alone
  friend bool operator==(const tensor_range&, const tensor_range&) = default;
};

/// Options that contradict each other, or lie outside their bounds, are an `invalid_argument` error.
void check(const calibration_options& o);

/// What has to be kept of a tensor for its range to be chosen so.
statistics_options statistics_for(const calibration_options& o);

/// The range that the method chooses; 0 to 0 for a tensor that never had an element.
tensor_range choose_range(const tensor_statistics& s, const calibration_options& o);

}  // namespace kiln::quantize

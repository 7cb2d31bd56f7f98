#pragma once
#include "kiln/quantize/mixed.hpp"
#include "kiln/quantize/precision.hpp"

// All that it takes to put a program in another precision: what a door of kiln calls.
namespace kiln::quantize {

/// How a program is quantized. Text sets its fields by name (`quantize/options.hpp`).
struct quantizer_options {
  /// The precision and its own options. Lists of ops and excluded nodes are those below.
  precision_options how{};
  /// The ops that it concerns, by kiln's names; none: all that the precision concerns.
  std::vector<std::string> ops{};
  /// Nodes of the source program that stay as they are, and those that alone are quantized, if there are some.
  std::vector<std::string> exclude{}, only{};
  calibration_options calibration{};
  /// `int8` and `fp8`: how much of the ranges of channels moves from values to weights first (`smooth_options`).
  std::optional<double> smooth_alpha = {};
  bool fold_smoothing = true;
  /// `int8`: decibels that outputs keep (`to_int8_within`).
  std::optional<double> min_sqnr = {};
};

/// A quantized program, and how it came about.
struct quantization {
  quantized_program made;
  program prepared;                            ///< what it was made of, smoothed where the options ask for it
  ranges known;                                ///< what it was made by, given or of samples
  std::optional<accuracy_report> report = {};  ///< where `min_sqnr` asked for it
};

/// Called after each sample with what it serves, such as "calibrating", and the number of samples so far.
using quantizer_progress = std::function<void(std::string_view what, std::size_t samples)>;

/// Puts a source program in another precision.
class quantizer {
 public:
  /// Prepares the program; the target, which outlives this, runs samples. Options that mean nothing to the precision
  /// are an `invalid_argument` error, an op for `f16` or `bf16` that the program does not have is `not_found`.
  quantizer(const program& source, quantizer_options options, const target& t, compile_options compiling = {});

  const program& prepared() const { return prepared_; }
  /// Whether the program has values whose ranges the precision takes.
  bool concerns_values() const { return !values_with_ranges(prepared_, options_.how).empty(); }
  /// Whether `quantize` reads samples, with ranges or without.
  bool reads_samples(const ranges& known) const;

  /// The ranges that the precision takes; empty where it asks for those of no value. Errors: those of
  /// `quantize::calibrate`; `invalid_argument` for a precision that takes none, and for smoothing, whose ranges
  /// `quantize` finds.
  ranges calibrate(const calibration_data& data, const quantizer_progress& progress = {}) const;

  /// The program in the precision, by ranges, of a table for instance, and samples; either may be empty. Ranges that
  /// are needed and not given come from the samples. Errors: those of `with_precision` and `smoothed`;
  /// `invalid_argument` for ranges or samples that are missing, or have no use.
  quantization quantize(const ranges& known, const repeated_data& samples,
                        const quantizer_progress& progress = {}) const;

 private:
  bool rounds_by_samples() const {
    return options_.how.to == precision::int4 && options_.how.int4.method == weight_method::gptq;
  }
  void check_inputs(const ranges& known, bool has_samples) const;
  quantized_program smooth(const calibration_data& data, const quantizer_progress& progress) const;
  ranges ranges_of(const program& p, const calibration_data& data, const quantizer_progress& progress) const;

  quantizer_options options_;
  program prepared_;
  const target* target_;
  compile_options compiling_;
};

}  // namespace kiln::quantize

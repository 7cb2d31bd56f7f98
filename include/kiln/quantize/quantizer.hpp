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
  /// `int8`: decibels that outputs keep (`to_int8_within`).
  std::optional<double> min_sqnr = {};
};

/// Puts a source program in another precision.
class quantizer {
 public:
  /// Prepares the program; the target, which outlives this, runs samples. Options that mean nothing to the precision
  /// are an `invalid_argument` error.
  quantizer(const program& source, quantizer_options options, const target& t, compile_options compiling = {});

  const program& prepared() const { return prepared_; }
  /// Whether the program has values whose ranges the precision takes.
  bool concerns_values() const { return !values_with_ranges(prepared_, options_.how).empty(); }

  /// The ranges that the precision takes; empty where it asks for those of no value. Errors: those of
  /// `quantize::calibrate`; `invalid_argument` for a precision that takes none.
  ranges calibrate(const calibration_data& data, const calibration_progress& progress = {}) const;

  /// The program in the precision, by ranges, of a table for instance, and samples; either may be empty. Ranges that
  /// are needed and not given come from the samples. Errors: those of `with_precision`; `invalid_argument` for ranges
  /// or samples that are missing, or have no use.
  quantized_program quantize(const ranges& known, const repeated_data& samples,
                             const calibration_progress& progress = {}) const;

 private:
  bool rounds_by_samples() const {
    return options_.how.to == precision::int4 && options_.how.int4.method == weight_method::gptq;
  }

  quantizer_options options_;
  program prepared_;
  const target* target_;
  compile_options compiling_;
};

}  // namespace kiln::quantize

#pragma once
#include "kiln/quantize/calibration.hpp"

// How far a quantized program's values are from those of the program it was made of.
namespace kiln::quantize {

/// How a tensor is quantized.
struct tensor_quantization {
  scheme as;
  parameters with;
};

/// What became of a tensor's values, over any number of samples in constant memory.
class error_statistics {
 public:
  /// Adds a sample: the values, and what stands for them. Floats of any type, row-major or with strides, both of the
  /// same extents (a `shape_mismatch` error otherwise).
  void add(const tensor& expected, const tensor& found);
  /// Counts which of the values lie outside of what a quantization covers.
  void add_saturation(const tensor& expected, const tensor_quantization& q);
  /// Compares where the greatest value along the last axis is.
  void add_top1(const tensor& expected, const tensor& found);

  /// 20 log10(|x| / |x - y|): infinite where nothing differs, NaN where a value is not finite.
  double sqnr() const;
  /// |x - y|^2 / |x|^2: infinite where only x is 0.
  double noise() const;
  /// The cosine of the angle between x and y; 1 where both are 0, 0 where one is.
  double cosine() const;
  /// The share of values that saturate; none of them known: 0.
  double saturation() const;
  /// The share of rows whose greatest value is at the same place; none without rows.
  std::optional<double> top1() const;
  /// Of the expected values.
  range seen() const { return {counts_.low, counts_.high}; }

 private:
  value_counts counts_;
  double signal_ = 0, other_ = 0, product_ = 0, difference_ = 0;
  std::int64_t saturating_ = 0, covered_ = 0, rows_ = 0, same_rows_ = 0;
};

/// One tensor of a report.
struct tensor_accuracy {
  std::string name;
  range seen;                                            ///< of the reference's values
  std::optional<tensor_quantization> quantization = {};  ///< where it is known
  double saturation = 0;                                 ///< share of the values beyond what the quantization covers
  double sqnr = 0, cosine = 0;
  /// |x - y|^2 / |x|^2, less the greatest such noise of the watched tensors it is computed from: what this layer adds.
  double added_noise = 0;
  std::optional<double> top1 = {};  ///< outputs that look like scores of classes alone
};

/// Where a quantized program loses accuracy.
struct accuracy_report {
  std::size_t samples = 0;
  std::vector<tensor_accuracy> tensors;  ///< the one whose layer adds most noise first
  std::vector<tensor_accuracy> outputs;  ///< in the program's order
};

/// A table of lines: outputs, then tensors, worst layer first.
std::string report_text(const accuracy_report& r);

/// What a report says of a tensor, in a line: its SQNR, cosine, added noise, range and quantization.
std::string figures_text(const tensor_accuracy& t);

/// A drawing of the reference program as an SVG file: boxes are colored by the SQNR of their results, in steps of ten
/// decibels with a legend, and have the figures as tooltips. What has no figure is gray.
std::string report_svg(const program& reference, const accuracy_report& r);

/// The report as one JSON object: samples, outputs, tensors, each with name, low, high, type, scale, zero_point,
/// saturation, sqnr, cosine, added_noise, top1. Numbers that are not finite are the texts "inf" (of sqnr: no
/// difference), "-inf" and "nan".
std::string report_json(const accuracy_report& r);

/// A program and the quantized one made of it.
struct accuracy_question {
  const program& reference;
  const program& quantized;
  /// Values of both, paired by name: those that only one of them has are left out, and so are unnamed ones.
  std::vector<watched_value> in_reference, in_quantized;
  /// How tensors are quantized, by name; may lack any.
  std::map<std::string, tensor_quantization> quantizations = {};
};

/// The question of all floats of both programs. A value that is quantized and dequantized again is taken as those that
/// read it see it, with its type, scale and zero point where these are constants.
accuracy_question question_of(const program& reference, const program& quantized);

/// Runs both programs on every sample and compares the watched values and the outputs, which are paired by name too. No
/// data, and programs without a common output, are an `invalid_argument` error.
accuracy_report compare_accuracy(const accuracy_question& q, const target& t, const calibration_data& data,
                                 const compile_options& compiling = {}, const calibration_progress& progress = {});

/// A program that several others are compared with, on the same samples in the same order: it is compiled once, and its
/// values of the first samples are kept for the next comparison, as many as `most_kept` bytes hold.
class accuracy_reference {
 public:
  /// Watches these values and the outputs. The target outlives it. Errors: those of `watched_program`.
  accuracy_reference(const program& p, const std::vector<watched_value>& watched, const target& t,
                     compile_options compiling = {}, std::size_t most_kept = 0);

  /// As `compare_accuracy` does with the part of a question that is about the quantized program.
  accuracy_report compare(const program& quantized, const std::vector<watched_value>& in_quantized,
                          const std::map<std::string, tensor_quantization>& quantizations, const calibration_data& data,
                          const calibration_progress& progress = {});

 private:
  struct entry {
    watched_value of;
    bool is_output = false, is_scores = false;
  };
  static std::vector<entry> entries_of(const program& p, const std::vector<watched_value>& watched);
  std::span<const argument> values_of(std::size_t number, const sample& inputs);
  std::vector<double> noise_before(const std::vector<std::size_t>& compared,
                                   const std::vector<error_statistics>& errors) const;

  const target* target_;
  compile_options compiling_;
  module_graph main_;
  std::vector<entry> entries_;  ///< outputs, then watched values
  watched_program run_;
  std::size_t most_kept_, kept_bytes_ = 0;
  std::vector<std::vector<argument>> kept_;  ///< of the first samples
};

}  // namespace kiln::quantize

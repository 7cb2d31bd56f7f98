#pragma once
#include "kiln/quantize/accuracy.hpp"
#include "kiln/quantize/int8.hpp"

// Quantization that leaves in floats what would cost too much accuracy.
namespace kiln::quantize {

/// Gives all samples once more, from the first one on.
using repeated_data = std::function<calibration_data()>;

/// A quantized program that is near enough, and how near.
struct mixed_program {
  quantized_program made;
  accuracy_report report;
  std::vector<std::string> in_floats;  ///< products that stay in floats for it, worst first
};

/// Quantizes a prepared program as `to_int8` does, so that the SQNR of every output is `least` decibels or more: as
/// long as one is less, the products that read or compute the values that add most noise stay in floats, first one,
/// then twice as many each time. At worst all do, and the program is the given one. Errors: those of `to_int8` and
/// `compare_accuracy`.
mixed_program to_int8_within(const program& p, double least, const ranges& known, const int8_options& options,
                             const repeated_data& data, const target& t, const compile_options& compiling = {},
                             const calibration_progress& progress = {});

}  // namespace kiln::quantize

#pragma once
#include "kiln/quantize/methods.hpp"
#include "kiln/quantize/watch.hpp"

namespace kiln::quantize {

/// Ranges by name, in the order of the names.
using ranges = std::map<std::string, tensor_range>;

/// Finds the ranges of a program's values from samples of its inputs. Its memory is that of one sample and of
/// statistics that do not grow with the number of samples.
class calibrator {
 public:
  /// Watches float values of the program on this target. Errors: those of `watched_program`; `unsupported` for values
  /// that are no floats; `invalid_argument` for options that contradict each other.
  calibrator(program p, std::vector<watched_value> watched, const target& t, calibration_options options = {},
             compile_options compiling = {});

  /// Runs the program on one sample. Errors as `watched_program::run`.
  void add(const sample& inputs);
  /// Ends a batch of samples, as moving averages tell them apart.
  void end_batch();
  std::size_t samples() const { return program_.samples(); }

  /// The ranges so far. No sample yet is an `invalid_argument` error, and so are values that were NaN or, unless the
  /// options ignore them, infinite: it names the tensors.
  ranges finish() const;

 private:
  void check_values() const;

  calibration_options options_;
  watched_program program_;
  std::vector<tensor_statistics> statistics_;
};

/// Calibrates with all samples there are, in batches of `batch` samples (0: one batch).
ranges calibrate(program p, std::vector<watched_value> watched, const target& t, const calibration_data& data,
                 const calibration_options& options = {}, const compile_options& compiling = {}, std::size_t batch = 0,
                 const calibration_progress& progress = {});

}  // namespace kiln::quantize

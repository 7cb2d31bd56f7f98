#pragma once
#include "kiln/quantize/int8.hpp"

// Smoothing of outliers before integers: ranges move from activations to weights.
namespace kiln::quantize {

/// SmoothQuant's options (Xiao et al. 2022).
struct smooth_options {
  /// How much of a channel's range moves to the weights: from 0, nothing but what evens out the weights, to 1, all.
  double alpha = .5;
  /// Divide the norm or the weights that make a value, where nothing else reads it, and not the value.
  bool fold = true;
};

/// The values of a prepared program whose channels are smoothed: what dots with constant weights read, each once.
std::vector<watched_value> values_to_smooth(const program& p);

/// How `calibrate` finds the ranges of their channels.
calibration_options channel_calibration();

/// Smooths a prepared program by the ranges of channels of `values_to_smooth`; values without ranges stay as they are.
/// Calibrate what `to_int8` needs with the result, and do not prepare it again: that would undo it. An alpha beyond 0
/// to 1, and no value with channels, are `invalid_argument` errors.
quantized_program smoothed(program p, const ranges& channels, const smooth_options& options = {});

}  // namespace kiln::quantize

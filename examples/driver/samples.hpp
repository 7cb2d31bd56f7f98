#pragma once
#include <span>
#include <string>
#include <vector>

#include "kiln/quantize/watch.hpp"
#include "options.hpp"

namespace kiln::driver {

/// Samples of a program's inputs, one after the other: each folder of `folders` is a sample (input_K.pb in the inputs'
/// order, or NAME.npy and NAME.pb), or holds folders that are; --input NAME=FILE is one more. Files are read when it is
/// their turn. Errors: a folder that does not exist or holds no sample, a sample that lacks an input.
quantize::calibration_data samples_of(const model_options& o, const std::vector<std::string>& folders,
                                      std::span<const port> inputs);

}  // namespace kiln::driver

#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kiln/quantize/watch.hpp"
#include "options.hpp"

namespace kiln::driver {

/// Samples, and where the last one that was given comes from: its folder, or "--input"; empty before and after them.
struct sample_source {
  quantize::calibration_data next;
  std::shared_ptr<const std::string> place;
};

/// Samples of a program's inputs, one after the other: each folder of `folders` is a sample (input_K.pb in the inputs'
/// order, or NAME.npy and NAME.pb), or holds folders that are; --input NAME=FILE is one more. Files are read when it is
/// their turn. Errors: a folder that does not exist or holds no sample, a sample that lacks an input.
sample_source samples_of(const model_options& o, const std::vector<std::string>& folders, std::span<const port> inputs);

/// `use(data)`, whose errors name the folder of the sample that they are about.
template <class Use> auto with_samples(const sample_source& from, Use&& use) {
  try {
    return use(from.next);
  } catch (const error& e) {
    if (from.place->empty()) throw;
    throw error(e.code(), "sample " + *from.place + ": " + e.what());
  }
}

}  // namespace kiln::driver

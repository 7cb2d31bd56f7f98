#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kiln/quantize/mixed.hpp"
#include "options.hpp"

namespace kiln::driver {

/// Samples, any number of times, and where the last one that was given comes from: its folder, or "--input"; empty
/// before and after them.
struct sample_source {
  quantize::repeated_data again;
  std::shared_ptr<const std::string> place;
  std::size_t count = 0;
};

/// Samples of a program's inputs, one after the other: each folder of `folders` is a sample (input_K.pb in the inputs'
/// order, or NAME.npy and NAME.pb), or holds folders that are; --input NAME=FILE is one more. Files are read when it is
/// their turn. Errors: a folder that does not exist or holds no sample, a sample that lacks an input.
sample_source samples_of(const model_options& o, const std::vector<std::string>& folders, std::span<const port> inputs);

/// `use(again)`, whose errors name the folder of the sample that they are about.
template <class Use> auto with_repeated_samples(const sample_source& from, Use&& use) {
  try {
    return use(from.again);
  } catch (const error& e) {
    if (from.place->empty()) throw;
    throw error(e.code(), "sample " + *from.place + ": " + e.what());
  }
}

/// `use(data)`, the same for samples that are needed once.
template <class Use> auto with_samples(const sample_source& from, Use&& use) {
  return with_repeated_samples(from, [&](const quantize::repeated_data& again) { return use(again()); });
}

}  // namespace kiln::driver

#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/runtime/option_row.hpp"

namespace kiln::onnxruntime {

/// What a session may ask of the provider.
struct provider_options {
  unsigned device_id = 0;
  std::string target = "cpu";  ///< as in `named_target`
  unsigned threads = 0;        ///< of the pool that the session's partitions share; 0: one for each processor
  bool fp16 = false, bf16 = false, fp8 = false, int8 = false;
  std::string calibration_table;  ///< of int8 and fp8: a file in any form (docs/quantize.md)
  bool native_table = false;      ///< what form the caller takes the table for; the content decides
  bool exhaustive_tune = false;
  std::string cache_dir;  ///< a folder of compiled programs; empty: none
  bool dump_model_ops = false;
  unsigned least_nodes = 1;  ///< partitions of fewer nodes are left to other providers
};

/// An option: its row, the other names that programs know it by, and the environment variables that override it. The
/// row's name is the seed documentation's.
struct provider_option : option_row<provider_options> {
  std::vector<std::string_view> also{};
  std::vector<std::string_view> environment{};
};

/// All options, in the order that the documentation shows.
std::span<const provider_option> provider_option_table();

/// The value of an environment variable, null where it is not set.
using environment = std::function<const char*(const char* name)>;

/// Reads options by any of their names; the environment comes before them. A name that is none is a `not_found` error
/// that lists the known ones, the nearest first; one option by two names with two values, fp16 with bf16, int8 without
/// a table and a value that is none of the option's are `invalid_argument` errors.
provider_options read_provider_options(std::span<const std::pair<std::string, std::string>> given,
                                       const environment& variables);

}  // namespace kiln::onnxruntime

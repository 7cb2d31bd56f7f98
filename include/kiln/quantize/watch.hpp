#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/runtime/executable.hpp"

// Runs of a program that show values from its middle.
namespace kiln::quantize {

/// A value of a program's main module under the name that reports and tables give it.
struct watched_value {
  std::string name;
  value_id value;
};

/// The values of these names: an input, an output, else the last instruction so named (the result of a source node that
/// became several instructions; NAME#0 is its first other float, NAME#1 the next). A name that is none is a `not_found`
/// error.
std::vector<watched_value> values_named(const program& p, std::span<const std::string> names);

/// Every float that depends on an input of the program, inputs and outputs included, in order. A value is named as
/// `values_named` finds it; those without such a name are "%" and their number, which another program's values have
/// too.
std::vector<watched_value> float_values(const program& p);

/// Whether a name is "%" and a number: it means a value in its own program alone, so that no table keeps it.
bool is_unnamed(std::string_view name);

/// One sample: every input of the program by its name.
using sample = std::map<std::string, argument>;

/// Gives the next sample, or none after the last one.
using calibration_data = std::function<std::optional<sample>()>;

/// Called after each sample with the number of samples so far.
using calibration_progress = std::function<void(std::size_t)>;

/// A program that is run for the values it computes on the way: they are its outputs, so every target shows them, and a
/// pass may change how they are computed but not what. It holds one sample's values at a time; extents may differ from
/// sample to sample.
class watched_program {
 public:
  /// Compiles without fusion; the program's own outputs are computed where they are watched. Errors: those of
  /// `compile`; a value that the program does not have, or a name given twice, is an `invalid_argument`.
  watched_program(program p, std::vector<watched_value> watched, const target& t, compile_options options = {});

  /// Runs and returns the values in the order they were given, valid until the next run. An error names the sample's
  /// number; a missing input is an `invalid_argument` error, an unknown one `not_found`, another type `shape_mismatch`.
  std::span<const argument> run(const sample& inputs);
  std::span<const watched_value> watched() const { return watched_; }
  std::size_t samples() const { return samples_; }
  thread_pool& pool() const { return run_.pool(); }

 private:
  void make_room(std::span<const argument> inputs);

  std::vector<watched_value> watched_;
  executable run_;
  workspace memory_;
  std::vector<shape> shapes_;  ///< of the last sample
  std::vector<argument> values_;
  std::vector<bool> sized_;  ///< known before the run
  std::size_t samples_ = 0;
};

}  // namespace kiln::quantize

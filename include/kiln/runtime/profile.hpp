#pragma once
#include "kiln/runtime/executable.hpp"

namespace kiln {

/// When a step ran, since the first run of its profile began.
struct step_time {
  std::size_t step = 0;  ///< in `compile_report::steps`
  double begin_ms = 0, ms = 0;
};

/// The steps of some runs, in the order in which they ended.
struct run_profile {
  std::size_t runs = 0;
  std::vector<step_time> steps;

  /// The median time of each step of the report over the runs, in ms; 0 of a step that did not run.
  std::vector<double> median_ms(const compile_report& report) const;
};

/// Runs so many times and notes when each step ran; steps that else run side by side then follow each other.
run_profile profile_runs(const executable& exe, workspace& w, std::span<const argument> inputs,
                         std::span<argument> outputs, std::size_t runs = 1);

/// A profile in the JSON of Chrome's trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing open.
std::string chrome_trace(const run_profile& profile, const compile_report& report);

}  // namespace kiln

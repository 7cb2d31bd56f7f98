#pragma once
#include <string_view>

#include "kiln/runtime/run_options.hpp"

namespace kiln::driver {

/// The level that KILN_DEBUG asks for, 0 to 5; each includes the ones below: 1 graph, 2 per-pass changes, 3 plan,
/// 4 the kernels' source, 5 timings. Everything goes to standard error.
int debug_level();

/// Level 1: the program.
void log_program(std::string_view when, const program& p);
/// Level 2: lets the pipeline tell what each pass changed.
void log_passes(pass_options& options);
/// Level 1: the optimized program; level 3: the plan; level 4: what each step's kernel computes, as source; level 5:
/// how long compiling took.
void log_executable(const executable& exe);
/// Level 5: adds the time of each step to the run's options.
void log_steps(const executable& exe, run_options& options);

}  // namespace kiln::driver

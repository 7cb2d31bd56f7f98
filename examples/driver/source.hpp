#pragma once
#include <string>

#include "kiln/runtime/executable.hpp"

namespace kiln::driver {

/// What a step's kernel computes, a line a value, as source where the ops' own text gives it. Empty for the plan's
/// copies.
std::string step_source(const executable& exe, const step_info& step);

}  // namespace kiln::driver

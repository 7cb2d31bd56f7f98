#pragma once
#include <memory>
#include <string_view>

#include "kiln/runtime/kernel.hpp"

namespace kiln {

/// A target by its name: "eigen", "reference", "hip", "hip:DEVICE" (a number) or "hip:ARCHITECTURE" ("gfx90a"). `tune`
/// is `hip_options::tune`; the CPU's tuning is an option of compilation. Another name is a `not_found` error that lists
/// the targets of this build; a GPU that is not there an `unsupported` one.
std::unique_ptr<target> named_target(std::string_view name, bool tune = false);

}  // namespace kiln

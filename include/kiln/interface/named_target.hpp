#pragma once
#include <memory>
#include <string_view>

#include "kiln/runtime/executable.hpp"

namespace kiln {

/// A target by its name: "eigen", "reference", "hip", "hip:DEVICE" (a number) or "hip:ARCHITECTURE" ("gfx90a"); "cpu",
/// "ref" and "gpu", MIGraphX's names, mean the first three. It is for programs that are compiled with these options: a
/// GPU reads `tune` and `tuning_file`. Another name is a `not_found` error that lists the targets of this build, a GPU
/// that is not there an `unsupported` one, and a target that has nothing to tune with `tune` an `invalid_argument` one.
std::unique_ptr<target> named_target(std::string_view name, const compile_options& compiling = {});

/// MIGraphX's name of a target by kiln's own, which stays as it is where MIGraphX has none.
std::string_view migraphx_target_name(std::string_view own);

}  // namespace kiln

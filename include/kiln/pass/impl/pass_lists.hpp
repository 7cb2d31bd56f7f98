#pragma once
#include "kiln/pass/passes.hpp"

/// The run-time pipeline's parts are compiled in units of their own, each a few seconds.
namespace kiln::detail {

std::span<const named_pass<program>> program_simplifying_passes();
std::span<const named_pass<program>> program_fusing_passes();
/// Before all others in programs that hold the ops it writes out, which are of run time alone; else null. A target that
/// has a pass of this name among its forms writes them out in its own way.
const named_pass<program>* program_expansion(const program& p);

}  // namespace kiln::detail

#pragma once
#include "kiln/pass/passes.hpp"

/// The run-time pipeline's parts are compiled in units of their own, each a few seconds.
namespace kiln::detail {

std::span<const named_pass<program>> program_simplifying_passes();
std::span<const named_pass<program>> program_fusing_passes();
/// Before all others: only programs of run time hold the ops that it writes out.
const named_pass<program>& program_expansion();

}  // namespace kiln::detail

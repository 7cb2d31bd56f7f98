#pragma once
#include "kiln/pass/pipeline.hpp"

namespace kiln {

/// `optimise` with passes that write the program in the forms a target's kernels have: they run before the others in
/// each round of simplification.
compile_notes optimise(program& p, const pass_options& options, std::span<const named_pass<program>> forms);

}  // namespace kiln

#pragma once
#include "kiln/pass/pipeline.hpp"

namespace kiln {

/// Passes that write a program in the forms a target's kernels have.
struct target_passes {
  std::span<const named_pass<program>> forms{};  ///< before the others in each round of simplification
  std::span<const named_pass<program>> fuse{};   ///< behind the other fusion passes
};

/// `optimise` with a target's passes.
compile_notes optimise(program& p, const pass_options& options, const target_passes& own);

}  // namespace kiln

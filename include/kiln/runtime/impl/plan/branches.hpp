#pragma once
#include "kiln/runtime/impl/plan/plan.hpp"

namespace kiln::detail {

/// Sets the plan's groups: from each step on, the longest run of steps that falls into two branches or more. `infos`
/// are those of its steps.
void find_groups(plan& p, std::span<const step_info> infos);

/// Chooses those of the plan's groups that are estimated to end clearly earlier with their branches side by side than
/// with one step after another, each by all threads, and whose branches take little more scratch memory than that. In a
/// run, `tensors` and `sizes` are those of the plan's operands and slots, and `scratch` is what each step takes by
/// itself. Allocates nothing where `to` has served the plan before.
void choose_groups(const plan& p, std::span<const tensor> tensors, std::span<const std::int64_t> sizes,
                   std::span<const std::size_t> scratch, unsigned threads, branch_choice& to);

}  // namespace kiln::detail

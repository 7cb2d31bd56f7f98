#pragma once
#include "kiln/runtime/impl/plan/plan.hpp"

namespace kiln::detail {

/// Sets the plan's groups: from each step on, the longest run of steps that falls into two branches or more.
void find_groups(plan& p);

/// Says of each step of `p` whether one of several threads runs it without the others, which it would take longer to
/// call than they save: a contraction, or a step whose kernel estimates its time, of about two microseconds or less.
/// `tensors` and `sizes` as of `choose_groups`; `changed` says of each operand whether its tensor is another one than
/// when `to` served the plan before: of steps without such, what it says stays. Allocates nothing then.
void choose_alone(const plan& p, std::span<const tensor> tensors, std::span<const std::uint8_t> changed,
                  std::span<const std::int64_t> sizes, unsigned threads, std::vector<std::uint8_t>& to);

/// Chooses those of the plan's groups that are estimated to end clearly earlier with their branches side by side than
/// with one step after another, each by all threads, and whose branches take little more scratch memory than that. In a
/// run, `tensors` and `sizes` are those of the plan's operands and slots, and `scratch` is what each step takes by
/// itself. Allocates nothing where `to` has served the plan before.
void choose_groups(const plan& p, std::span<const tensor> tensors, std::span<const std::int64_t> sizes,
                   std::span<const std::size_t> scratch, unsigned threads, branch_choice& to);

}  // namespace kiln::detail

#include "kiln/pass/impl/pass_lists.hpp"

namespace kiln::detail {

std::span<const named_pass<program>> program_simplifying_passes() { return simplifying_passes<program>; }

}  // namespace kiln::detail

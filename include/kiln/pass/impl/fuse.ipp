#include "kiln/pass/impl/pass_lists.hpp"

namespace kiln::detail {

std::span<const named_pass<program>> program_fusing_passes() { return fusing_passes<program>; }

}  // namespace kiln::detail

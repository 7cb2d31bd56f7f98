#pragma once
#include "kiln/core/simd/generic.hpp"

namespace kiln::elementary {

KILN_FN void fence_streams() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

KILN_FN void leave_wide_registers() {}

}  // namespace kiln::elementary

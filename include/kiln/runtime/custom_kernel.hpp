#pragma once
#include "kiln/runtime/kernel.hpp"

namespace kiln {

/// Runs a custom op's computation over the operands where they are; null for other ops.
std::unique_ptr<kernel> make_custom_kernel(const operation& op);

}  // namespace kiln

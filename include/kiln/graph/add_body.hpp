#pragma once
#include "kiln/graph/module.hpp"

namespace kiln {

/// Copies a program into another one as a body that an op of it may call: the main module, and those it calls. The
/// parameters stand in the order of `parameters`, which lists all of them, and what no output needs is left out.
module_ref add_body(program& into, const program& from, std::span<const value_id> parameters);

}  // namespace kiln

#pragma once
#include "kiln/op/fields.hpp"

namespace kiln {

/// Why instructions were grouped into one kernel.
enum class fusion : std::uint8_t {
  pointwise,    ///< elementwise ops over one index space
  reduce,       ///< pointwise and reductions over one row (softmax, norms)
  contraction,  ///< a dot or convolution and the pointwise ops after it
};

constexpr std::string_view to_string(fusion f) { return enumerator_name(f, {"pointwise", "reduce", "contraction"}); }

namespace op {

/// Instructions that run as one kernel: `body` is a module whose parameters are the inputs and whose outputs are the
/// results. Its meaning is the body's meaning, so any target can run it instruction by instruction.
struct fused {
  fusion kind = fusion::pointwise;
  module_ref body{};
};

}  // namespace op
}  // namespace kiln

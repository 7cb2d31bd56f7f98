#pragma once
#include "kiln/tensorflow/impl/ops/common.hpp"

namespace kiln::tensorflow {

/// Pads of x [batch, channels, spatial...], begins first, with which a window gives as many outputs as strides begin in
/// an extent; of two unequal ones the greater comes last (padding SAME). Errors: `unsupported` for a stride over an
/// extent that is a symbol.
ints same_pads(const node_context& c, value x, const spatial& kernel, const spatial& stride, const spatial& dilation);

}  // namespace kiln::tensorflow

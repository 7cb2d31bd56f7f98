#pragma once
#include "kiln/tensorflow/impl/ops/common.hpp"

namespace kiln::tensorflow {

/// Pads of x [batch, channels, spatial...], begins first, with which a window gives as many outputs as strides begin in
/// an extent; of two unequal ones the greater comes last (padding SAME). Errors: `unsupported` for a stride over an
/// extent that is a symbol.
ints same_pads(const node_context& c, value x, const spatial& kernel, const spatial& stride, const spatial& dilation);

/// y under what a node names in `fused_ops`, as TensorFlow's own optimizer joins them: a bias, a sum, a normalization,
/// activations; their operands are the node's inputs from `operand` on. Errors: `unsupported` for another name,
/// `malformed` for inputs that none of them takes.
value with_fused_ops(const node_context& c, value y, std::size_t operand = 2);

}  // namespace kiln::tensorflow

#pragma once
#include "kiln/onnx/impl/ops/common.hpp"

namespace kiln::onnx {

/// The index of the largest element of each window in the flattened x, i64 of the pooled extents. Within a channel,
/// indices are row-major or column-major.
value argmax_positions(node_context& c, value x, const dims& pooled, const op::pooling& p, bool column_major);

}  // namespace kiln::onnx

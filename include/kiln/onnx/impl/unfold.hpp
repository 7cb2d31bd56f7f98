#pragma once
#include "kiln/onnx/impl/parse.hpp"

namespace kiln::onnx {

/// Where the greatest element of each window lies: i64 of the pooled extents, positions in the whole of x, within a
/// plane row by row, or column by column.
value greatest_positions(call& c, value x, const dims& pooled, const op::pooling& p, bool column_major);

}  // namespace kiln::onnx

#pragma once
#include "kiln/tensorflow/impl/ops/common.hpp"

// What importers of lists of boxes share.
namespace kiln::tensorflow {

/// The first `length` elements along an axis of x and then of zeros.
value padded_to(node_context& c, value x, dimension length, std::int64_t axis = 0);
/// The extent of dim 0 as a scalar.
inline value count_of_rows(node_context& c, value x, dtype type) {
  return dimensions_value(c.build, {}, {x.dim(0)}).convert(type);
}
/// [n, 3] rows of batch, class and box that ONNX's suppression chooses of boxes [n, 4], scores [classes, n]; `least`
/// may be empty.
value chosen_rows(node_context& c, value boxes, value scores, value most, value overlap, value least);

}  // namespace kiln::tensorflow

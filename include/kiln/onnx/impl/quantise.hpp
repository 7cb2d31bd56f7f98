#pragma once
#include "kiln/onnx/impl/parse.hpp"

// What the quantised operators of both domains share.
namespace kiln::onnx {

/// Rounds half to even, shifts by the zero point and saturates to an integer dtype or an 8-bit or 4-bit float.
value quantised(const call& c, value ratio, value zero, dtype t);

/// i32 x minus its zero point, which lies along rows or columns.
value centred_matrix(value x, value zero, bool rows);

/// Matrix product with numpy's rules for vectors.
value matmul(value a, value b);

/// A tensor quantised to u8 by its own range.
struct own_quantised {
  value y, scale, zero;
};
own_quantised quantised_by_range(call& c, value x);

/// Average pooling of input 0 by the node's attributes.
variables average_pool(call& c);

}  // namespace kiln::onnx

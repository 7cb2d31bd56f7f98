#pragma once
#include "kiln/onnx/impl/ops/common.hpp"

// What the quantized operators of both domains share.
namespace kiln::onnx {

/// ratio rounded (half to even), plus the zero point, saturated to an integer, 8-bit or 4-bit float type.
value quantized(const node_context& c, value ratio, value zero, dtype t);

/// x as i32 minus its zero point, one number or one for each row (or column).
value centered_matrix(value x, value zero, bool rows);

/// A matrix product as numpy's matmul: vectors become matrices of one row or column.
value matmul(value a, value b);

/// A tensor quantized to u8 by its range.
struct quantized_tensor {
  value y, scale, zero;
};
quantized_tensor quantized_by_range(node_context& c, value x);

/// Numbers of blocks of `block` elements along an axis, repeated for each element of an extent.
value repeat_blocks(value x, std::int64_t axis, std::int64_t block, dimension extent);

/// ONNX AveragePool of input 0.
variables average_pool(node_context& c);

}  // namespace kiln::onnx

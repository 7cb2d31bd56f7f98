#pragma once
#include "kiln/onnx/impl/ops/common.hpp"

// What the quantized operators of both domains share.
namespace kiln::onnx {

/// ratio rounded (half to even), plus the zero point, saturated to an integer, 8-bit or 4-bit float type.
value quantized(const node_context& c, value ratio, value zero, dtype t);

/// x as i32 minus its zero point, one number or one for each row (or column).
value centered_matrix(value x, value zero, bool rows);

/// A scale or zero point of one element as a scalar; others as they are.
inline value scalar_or_vector(value x) { return x.rank() == 1 && x.dim(0) == dimension(1) ? x.reshape({}) : x; }

/// (stored - zero) * scale for inputs that these numbers name; the zero point may be absent.
value dequantized_input(node_context& c, std::size_t stored, std::size_t scale, std::size_t zero);
/// y quantized by the scale that is input i and the zero point that is input i + 1, without one as `t` by 0.
value quantized_output(node_context& c, value y, std::size_t i, dtype t);

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

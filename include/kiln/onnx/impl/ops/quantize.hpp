#pragma once
#include "kiln/onnx/impl/ops/common.hpp"
#include "kiln/onnx/impl/restored.hpp"

// What the quantized operators of both domains share.
namespace kiln::onnx {

/// ratio rounded (half to even), plus the zero point, saturated to an integer, 8-bit or 4-bit float type.
value quantized(const node_context& c, value ratio, value zero, dtype t);

/// A scale or zero point of one element as a scalar; others as they are.
inline value scalar_or_vector(value x) { return x.rank() == 1 && x.dim(0) == dimension(1) ? x.reshape({}) : x; }

/// Adds an op that makes floats, or wider integers, of stored numbers. Constants do not fold: they stay as stored.
template <class Op, class... Values> value add_unfolded(node_context& c, const Op& op, value stored, Values... more) {
  const bool is_number = stored.get_shape().elements() == dimension(1);
  const restored here(c.build.fold_constants, c.build.fold_constants && is_number);
  return c.build.add(op, stored, more...);
}

/// (stored - zero) * scale of f32, the zero point perhaps absent; scale and zero point are numbers, or vectors along
/// `axis`. As the op `dequantize_linear` where it takes them, so that files are written as they were read.
value dequantized(node_context& c, value stored, value scale, value zero, std::int64_t axis = 0);
/// The same of inputs that these numbers name.
value dequantized_input(node_context& c, std::size_t stored, std::size_t scale, std::size_t zero);
/// y quantized by the scale that is input i and the zero point that is input i + 1, without one as `t` by 0.
value quantized_output(node_context& c, value y, std::size_t i, dtype t);

/// The product of two scales, numbers or vectors; of constants it is one.
value product_of_scales(node_context& c, value a, value b);
/// (a - its zero point) times (b - its zero point), exact in i32; zero points may be absent.
value integer_product(node_context& c, value a, value a_zero, value b, value b_zero);
/// (a - its zero point) * its scale times the same of b, where the scales are one number and, of a matrix b, perhaps
/// one for each column; empty where they are others.
value dequantized_product(node_context& c, const variables& a, const variables& b);

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

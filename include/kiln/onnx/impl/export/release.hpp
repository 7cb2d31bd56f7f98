#pragma once
#include "kiln/graph/module.hpp"
#include "kiln/op/quant/block_dequantize.hpp"
#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/op/quant/quantize_linear.hpp"

// The operator sets that models are written for.
namespace kiln::onnx {

inline constexpr std::int64_t operator_set = 20, format_version = 9, ml_version = 3;

/// An operator set, and the IR version of its ONNX release.
struct release {
  std::int64_t operators, format;
};

/// The first that has an element type.
constexpr release release_of(dtype t) {
  if (t == dtype::i4 || t == dtype::u4) return {21, 10};
  if (t == dtype::f4e2m1) return {23, 11};
  if (t == dtype::f8e8m0) return {24, 12};
  if (t == dtype::i2 || t == dtype::u2) return {25, 13};
  return {operator_set, format_version};
}

/// Quantization to and from 16 bits, and in blocks, came with 4-bit integers, in ai.onnx 21.
inline bool quantizes_words(const module_graph& m, const module_graph::instruction& i) {
  if (i.kind != instruction_kind::op) return false;
  if (i.op.is<op::block_dequantize>()) return is_float(m.shape_of(i.inputs[0]).type);
  if (i.op.is<op::quantize_linear>()) return size_of(i.results[0].type) == 2;
  return i.op.is<op::dequantize_linear>() && size_of(m.shape_of(i.inputs[0]).type) == 2;
}

}  // namespace kiln::onnx

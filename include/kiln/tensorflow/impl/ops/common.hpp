#pragma once
#include "kiln/onnx/impl/ops/common.hpp"
#include "kiln/tensorflow/impl/attributes.hpp"
#include "kiln/tensorflow/impl/ops/op_tables.hpp"
#include "kiln/tensorflow/import.hpp"

// What the importers of TensorFlow's operators share. Operators are described in TensorFlow's API documentation of
// `tf.raw_ops`.
namespace kiln::tensorflow {

using onnx::axes_from, onnx::axes_within, onnx::axis_within, onnx::dimensions_value;
using onnx::import_binary, onnx::import_unary;
using onnx::node_context, onnx::op_importer, onnx::variable, onnx::variables;

/// What ONNX's operator of this name gives for the inputs, where the two frameworks mean the same.
variables as_onnx(node_context& c, std::string_view op_type, variables inputs,
                  std::vector<onnx::attribute> attributes = {});

/// Numbers as an i64 list.
inline value list_of(node_context& c, std::span<const std::int64_t> numbers) {
  return c.build.constant(dtype::i64, {static_cast<std::int64_t>(numbers.size())}, numbers);
}
/// A constant input of integers as numbers, whatever its rank.
inline ints integers_of(const node_context& c, std::size_t input, std::string_view what) {
  const auto found = c.numbers(input, what);
  return ints(onnx::as_span(found));
}
/// An attribute that has no default in TensorFlow is there. Errors: `malformed`.
inline void require(const node_context& c, std::string_view name) {
  if (!c.find(name)) c.malformed("attribute '" + std::string(name) + "' is missing");
}
/// Whether images are [batch, height, width, channels] here. Errors: `unsupported` for packed layouts.
bool has_last_channels(const node_context& c);

}  // namespace kiln::tensorflow

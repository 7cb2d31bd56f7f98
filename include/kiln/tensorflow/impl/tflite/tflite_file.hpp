#pragma once
#include "kiln/core/buffer.hpp"
#include "kiln/onnx/node.hpp"

namespace kiln::tensorflow {

/// The domain of TFLite's operators.
inline constexpr std::string_view tflite_domain = "tflite";

/// A TFLite model in the importer's words. Nodes are of domain `tflite` and compute in reals: where a file's tensor is
/// quantized, ONNX's DequantizeLinear and QuantizeLinear stand around them.
struct tflite_file {
  onnx::model model;
  std::vector<std::string> remarks;
};

/// Reads a TFLite file: its first subgraph under its tensors' names or, where one is given, that of a signature under
/// the signature's. Constants share the file's bytes. Errors: `malformed` says where; `not_found` for a signature that
/// the file does not have; `limit` where calls of subgraphs add too much for `max_nodes` nodes.
tflite_file read_tflite(const buffer& file, const std::string& signature, std::size_t max_nodes);

/// The inputs of that subgraph. Errors as `read_tflite`.
std::vector<onnx::value_info> tflite_inputs(const buffer& file, const std::string& signature);

/// Whether bytes begin as a TFLite file does.
bool begins_as_tflite(std::span<const std::byte> bytes);

}  // namespace kiln::tensorflow

#pragma once
#include "kiln/interface/onnxruntime/host.hpp"
#include "kiln/onnx/node.hpp"

namespace kiln::onnxruntime {

/// A graph of ONNX Runtime in the importer's words.
struct graph_copy {
  onnx::model model;
  /// What the nodes of the main graph compute, as ONNX Runtime inferred it.
  std::vector<onnx::value_info> values;
  /// The nodes of the main graph, in the model's order.
  std::vector<const OrtNode*> nodes;
};

/// Whether tensors share ONNX Runtime's memory, which ends with the callback that reads them, or are copied. External
/// data is mapped in either case.
enum class tensor_memory : std::uint8_t { shared, owned };

/// Reads a graph with its bodies. An initializer that a run may replace is an input.
graph_copy read_graph(const host& ort, const OrtGraph* graph, tensor_memory memory);

/// The same of a graph that has one node only.
graph_copy read_lone_node(const host& ort, const OrtNode* node, const onnx::opsets& versions);

/// A declared value.
onnx::value_info read_value(const host& ort, const OrtValueInfo* value);

}  // namespace kiln::onnxruntime

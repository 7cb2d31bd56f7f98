#pragma once
#include <unordered_set>

#include "kiln/core/buffer.hpp"
#include "kiln/onnx/node.hpp"

namespace kiln::tensorflow {

/// A GraphDef in the importer's words. Nodes are of domain `tensorflow`; output k of node `n` is `n:k`, and `n` for 0.
/// Placeholders are inputs, constants initializers.
struct graph_file {
  onnx::graph graph;
  std::vector<onnx::function> functions;  ///< that nodes call
  std::unordered_set<std::string> read;   ///< nodes that others read, those that are left out too
  std::size_t assertions = 0;             ///< how many nodes were left out: NoOp, Assert and what belongs to them
};

/// Reads a GraphDef in binary or text form; constants share its bytes. Errors: `malformed` says where; `limit`.
/// Outputs of the `wanted` names are read.
graph_file read_graph(const buffer& file, std::span<const std::string> wanted = {});

/// Whether bytes begin as a GraphDef does, in binary or text form.
bool begins_as_graph(std::span<const std::byte> bytes);
/// Whether they are text.
bool begins_as_text(std::span<const std::byte> bytes);
/// Whether bytes begin as the file of a SavedModel does (saved_model.pb), which holds a graph without its variables.
bool begins_as_saved_model(std::span<const std::byte> bytes);

/// TensorFlow's number of an element type (DataType of types.proto) as ONNX's; `undefined` for those that kiln's
/// tensors do not hold. A reference type (100 more) is the type.
onnx::element to_element(std::uint64_t type);
/// The number of a name, 0 where there is none.
std::uint64_t type_number(std::string_view name);
/// Its name: "DT_FLOAT".
std::string type_name(std::uint64_t type);

}  // namespace kiln::tensorflow

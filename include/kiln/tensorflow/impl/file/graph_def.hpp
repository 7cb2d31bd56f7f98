#pragma once
#include <unordered_map>

#include "kiln/onnx/node.hpp"
#include "kiln/tensorflow/impl/file/tensor_message.hpp"

namespace kiln::tensorflow {

/// A function of a graph's library. Inputs of its nodes are written as those of a graph are: `n` or `n:k` for output k
/// of node n, `n` for an argument, `^n` for order.
struct function_def {
  std::string name;
  std::vector<std::string> inputs;        ///< names of the arguments
  std::vector<std::string> outputs;       ///< the values that it gives
  std::vector<std::string> output_names;  ///< and what those are called
  std::vector<std::string> ordered;       ///< nodes that run though no result needs them
  std::vector<onnx::attribute> defaults;  ///< of attributes that a call may leave out
  std::vector<onnx::node> nodes;
  std::string fault;  ///< why it cannot be called
};

/// A GraphDef. The attribute that names a function is of kind `other` and has the name as text; several, as texts. A
/// constant of strings has them as the attribute's texts.
struct graph_def {
  std::vector<onnx::node> nodes;
  std::vector<function_def> functions;
};

/// A GraphDef of a file in binary form; constants share its bytes. Errors: `malformed` says where; `limit`.
graph_def read_graph_def(bytes_view message, const buffer& file);

/// The attribute of a node, null where it has none.
const onnx::attribute* find_attribute(const onnx::node& n, std::string_view name);

/// Node and number of an input: "n" and 0 of "n" or "n:0". Order ("^n") is none.
struct output_ref {
  std::string_view node;
  std::size_t k = 0;
};
output_ref parts_of(std::string_view input);
inline bool is_order(std::string_view input) { return input.starts_with('^'); }

/// What output k of a node is called.
std::string output_name(std::string_view node, std::size_t k);
/// The greatest k that an input or a wanted output may name.
inline constexpr std::size_t last_output = 4095;

/// The nodes of a list by name. Errors: `malformed` where two have one name.
std::unordered_map<std::string_view, std::size_t> by_name(const std::vector<onnx::node>& nodes);

/// "node 'x' (Conv)"
inline std::string described(const onnx::node& n) { return "node '" + n.name + "' (" + n.op_type + ")"; }

}  // namespace kiln::tensorflow

#pragma once
#include <string>
#include <utility>
#include <vector>

#include "kiln/interface/onnxruntime/compute.hpp"
#include "kiln/onnx/node.hpp"

// EPContext nodes: compiled partitions inside ONNX models (ONNX Runtime's EP context design).
namespace kiln::onnxruntime {

using session_entries = std::vector<std::pair<std::string, std::string>>;

/// Whether a session writes its compiled partitions, and where: its entries `ep.context_*`.
struct context_settings {
  bool enable = false;
  bool embed = false;        ///< in the node; else in a file beside the model
  std::string file, prefix;  ///< the model that is written; empty: beside the source. Before the nodes' names
};
context_settings read_context_settings(const session_entries& entries);

/// The name of a file, without an extension, from the name of a node or graph, which may have any characters: all but
/// letters, digits, - and _ become _; "graph" for none.
std::string file_name(const std::string& name);

/// Whether a node is an EPContext one, and one that kiln wrote.
bool is_context(const onnx::node& n);
bool is_own_context(const onnx::node& n);

/// The node that holds a compiled partition; ONNX Runtime owns it. `model` is the path of the source.
OrtNode* make_context(const host& ort, const context_settings& how, const std::string& model, const std::string& name,
                      const node_ports& ports, const executable& exe, const target& t);

/// The executable of a node that kiln wrote. `model` is the path of the model that has the node. Another hardware
/// architecture or version is an `unsupported` error that names the attribute; a file outside the model's folder is
/// `malformed`.
executable load_context(const onnx::node& n, const std::string& model, const target& t, const compile_options& options);

/// What says whether a compiled model runs here, and whether it does.
std::string compatibility_info(const target& t);
compatibility judge_compatibility(std::string_view info, const target& t);

}  // namespace kiln::onnxruntime

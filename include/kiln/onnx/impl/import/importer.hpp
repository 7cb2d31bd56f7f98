#pragma once
#include "kiln/onnx/impl/import/body_builder.hpp"
#include "kiln/onnx/impl/import/input_shapes.hpp"
#include "kiln/onnx/impl/import/op_resolver.hpp"
#include "kiln/onnx/impl/import/scope.hpp"

namespace kiln::onnx {

/// Builds the program of a model: orders the nodes of a graph, and lets the op importer of each add its part.
class importer {
 public:
  /// `name` is the model's in errors.
  importer(const model& source, const import_options& options, std::string name);
  program run();
  /// The values of the kept inputs that have a default, after `run`.
  std::vector<std::pair<std::string, literal>>& defaults() { return defaults_; }
  /// Notes the nodes of the main graph that have faults while `run` works.
  void note_faulty_nodes(std::vector<node_fault>& to) { faulty_ = &to; }

  /// Imports the nodes of a graph or function that the `wanted` names need.
  void import_nodes(scope& names, const std::vector<node>& nodes, std::span<const std::string_view> wanted);
  void import_node(scope& names, const node& written, std::size_t index);

 private:
  void add_inputs(scope& names);
  void add_input(scope& names, const value_info& input, const input_shapes& shapes);
  void add_output(scope& names, const value_info& output);
  void add_node(scope& names, const node& written, std::size_t index);
  void count_node(const scope& names);
  variables import_op(scope& names, const node& n, const resolved_op& op, const variables& inputs);
  variables call_function(const node& n, const function& f, const variables& inputs);
  void note_missing(const function& f);

  const model& source_;
  const import_options& options_;
  import_state state_;
  body_builder bodies_;
  op_resolver ops_;
  std::vector<std::pair<std::string, literal>> defaults_;
  std::vector<node_fault>* faulty_ = nullptr;
  std::size_t called_nodes_ = 0, body_nodes_ = 0, most_body_nodes_ = 0;
};

}  // namespace kiln::onnx

#pragma once
#include <optional>
#include <string>
#include <vector>

#include "kiln/tensorflow/impl/bundle/tensor_bundle.hpp"
#include "kiln/tensorflow/impl/file/functions.hpp"

namespace kiln::tensorflow {

/// A tensor of a signature: its name there, the value of the graph (empty for one that is sparse or of several
/// tensors), and what is declared of it.
struct named_value {
  std::string name, value;
  onnx::value_info declared;
};
struct signature {
  std::string name;
  std::vector<named_value> inputs, outputs;
};

/// One graph of a SavedModel.
struct saved_model {
  graph_def graph;
  std::vector<signature> signatures;
};

/// Reads saved_model.pb, or its text form: the graph of a tag, or without one that of `serve`, or the only one. Errors:
/// `malformed`; `not_found` names the tags that there are.
saved_model read_saved_model(const buffer& file, const std::string& tag);
/// The signature of a name, or without one `serving_default`, or the only one. Errors: `not_found` names those there
/// are.
const signature& find_signature(const saved_model& m, const std::string& name);

/// Errors: `unsupported` for a tensor of a signature that is no value of the graph.
void check_dense(const named_value& v, const signature& s);

/// Puts constants in the place of the variables that a function needs. `graph` says where the checkpoint has each: by
/// the assignments that restore it, by its name, or by the objects of the checkpoint. Errors: `not_found` names a
/// variable.
void set_variables(function_def& main, const graph_def& graph, std::optional<tensor_bundle>& checkpoint);

}  // namespace kiln::tensorflow

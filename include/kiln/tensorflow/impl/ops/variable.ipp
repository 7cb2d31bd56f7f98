#include "kiln/tensorflow/impl/ops/common.hpp"

// Constants in functions, and variables: the handle of one is its value, which the file of a SavedModel has.
namespace kiln::tensorflow {

namespace {

variables import_constant(node_context& c) {
  const literal* const value = c.tensor_attribute("value");
  if (!value) c.malformed("attribute 'value' is missing");
  return {c.build.constant(*value)};
}
variables import_variable(node_context& c) {
  c.unsupported("the value of a variable is in the folder of a SavedModel, beside its graph");
}
variables import_read(node_context& c) { return {c.inputs.empty() ? variable() : c.inputs[0]}; }
variables import_is_set(node_context& c) { return {c.build.scalar(dtype::boolean, true)}; }

}  // namespace

op_importer_table variable_importers() {
  static constexpr std::string_view saved = "of a SavedModel";
  static constexpr op_importer table[] = {
      {domain, "Const", 1, import_constant},
      {domain, "IsVariableInitialized", 1, import_is_set},
      {domain, "ReadVariableOp", 1, import_read, saved},
      {domain, "VarHandleOp", 1, import_variable, saved},
      {domain, "VarIsInitializedOp", 1, import_is_set},
      {domain, "Variable", 1, import_variable, saved},
      {domain, "VariableV2", 1, import_variable, saved},
  };
  return table;
}

}  // namespace kiln::tensorflow

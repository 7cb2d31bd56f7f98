#include "kiln/onnx/impl/ops/ml/classifier.hpp"
#include "kiln/tensorflow/impl/ops/common.hpp"

// Constants in functions, variables and tables: the handle of a variable is its value, which the file of a SavedModel
// has; that of a hash table is a sequence of its keys and values, which tables.hpp finds.
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

// What a table holds, as a list.
value table_part(node_context& c, std::string_view part, dtype wanted) {
  const literal* const l = c.tensor_attribute(part);
  if (!l) c.unsupported(std::string(c.text("fault", "what is in the table is not known")));
  if (l->get_shape().type != wanted)
    c.malformed("the table's " + std::string(part) + " are " + std::string(kiln::to_string(wanted)) +
                ", it is initialized with " + kiln::to_string(l->get_shape()));
  return c.build.constant(l->reshaped({l->elements()}));
}
variables import_table(node_context& c) {
  require(c, "key_dtype");
  require(c, "value_dtype");
  const dtype keys = c.type_attribute("key_dtype", dtype::i64), values = c.type_attribute("value_dtype", dtype::i64);
  if (!is_integer(keys) || values == dtype::string)
    c.unsupported("a table has integers as keys and numbers as values, this one maps " +
                  std::string(kiln::to_string(keys)) + " to " + std::string(kiln::to_string(values)));
  const value k = table_part(c, "keys", keys), v = table_part(c, "values", values);
  if (!(k.dim(0) == v.dim(0)))
    c.malformed("there is a value for each key, found " + kiln::to_string(k.dim(0)) + " keys and " +
                kiln::to_string(v.dim(0)) + " values");
  return {variable::sequence({k, v})};
}
// Keys and values of input 0.
std::pair<value, value> table_of(const node_context& c) {
  if (!c.has(0) || !c.inputs[0].is_sequence || c.inputs[0].items.size() != 2 || c.inputs[0].items[0].rank() != 1 ||
      c.inputs[0].items[1].rank() != 1)
    c.unsupported("input 0 is no table that the graph makes and initializes");
  return {c.inputs[0].items[0], c.inputs[0].items[1]};
}
variables import_find(node_context& c) {
  const auto [keys, values] = table_of(c);
  const value x = c.in(1), otherwise = c.in(2);
  if (x.type() != keys.type() || otherwise.type() != values.type())
    c.malformed("the table maps " + std::string(kiln::to_string(keys.type())) + " to " +
                std::string(kiln::to_string(values.type())) + ", found " + kiln::to_string(x.get_shape()) +
                " to look up and " + kiln::to_string(otherwise.get_shape()) + " as the default");
  if (otherwise.rank() != 0) c.malformed("its default is no scalar: " + kiln::to_string(otherwise.get_shape()));
  if (keys.dim(0) == dimension(0)) return {onnx::selected(x.equal(x), otherwise, otherwise)};
  return {onnx::looked_up(c, x, keys, values, otherwise)};
}
variables import_table_size(node_context& c) { return {dimensions_value(c.build, {}, {table_of(c).first.dim(0)})}; }

}  // namespace

op_importer_table variable_importers() {
  static constexpr std::string_view saved = "of a SavedModel";
  static constexpr std::string_view initialized = "initialized by constants; integers as keys";
  static constexpr op_importer table[] = {
      {domain, "Const", 1, import_constant},
      {domain, "HashTable", 1, import_table, initialized},
      {domain, "HashTableV2", 1, import_table, initialized},
      {domain, "IsVariableInitialized", 1, import_is_set},
      {domain, "LookupTableFind", 1, import_find},
      {domain, "LookupTableFindV2", 1, import_find},
      {domain, "LookupTableSize", 1, import_table_size},
      {domain, "LookupTableSizeV2", 1, import_table_size},
      {domain, "ReadVariableOp", 1, import_read, saved},
      {domain, "VarHandleOp", 1, import_variable, saved},
      {domain, "VarIsInitializedOp", 1, import_is_set},
      {domain, "Variable", 1, import_variable, saved},
      {domain, "VariableV2", 1, import_variable, saved},
  };
  return table;
}

}  // namespace kiln::tensorflow

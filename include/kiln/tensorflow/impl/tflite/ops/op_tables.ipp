#include "kiln/tensorflow/impl/tflite/ops/op_tables.hpp"

#include <array>

#include "kiln/tensorflow/impl/tflite/ops/common.hpp"
#include "kiln/tensorflow/impl/tflite/tflite_file.hpp"

// What every operator of TFLite has: its importer by name, an activation after it, the types of its outputs.
namespace kiln::tensorflow {

namespace {

const tflite_operator* find_operator(std::string_view name) {
  for (const tflite_table table : tflite_tables())
    for (const tflite_operator& o : table)
      if (o.name == name) return &o;
  return nullptr;
}

variables import_operator(node_context& c) {
  const tflite_operator* const op = find_operator(c.source.op_type);
  if (!op) raise(errc::internal, "TFLite's operator " + c.source.op_type + " has no importer");
  if (c.source.outputs.empty()) c.malformed("it has no output");
  for (std::size_t i = c.size(); i > 0 && !c.inputs[i - 1]; --i) c.inputs.pop_back();
  variables out = op->function ? op->function(c) : as_tensorflow(c, op->same_as, c.inputs, c.source.attributes);
  const auto types = c.integers("output_types");
  for (std::size_t k = 0; k < out.size() && k < types.size(); ++k) {
    if (!out[k].tensor || out[k].is_sequence) continue;
    if (k == 0 && !op->activates_inside)
      out[k] = variable(activated(c, out[k].tensor, c.integer("fused_activation_function", 0)));
    if (types[k] != 0) out[k] = variable(out[k].tensor.convert(declared_type(c, k)));
  }
  return out;
}

}  // namespace

variables as_tensorflow(node_context& c, std::string_view op_type, variables inputs,
                        std::vector<onnx::attribute> attributes) {
  for (const op_importer_table table : op_importer_tables())
    for (const op_importer& o : table) {
      if (o.op_type != op_type) continue;
      onnx::node n;
      n.name = c.source.name;
      n.op_type = op_type;
      n.domain = domain;
      n.outputs = c.source.outputs;
      n.attributes = std::move(attributes);
      node_context other{c.build, n, 1, std::move(inputs), c.bodies};
      return o.function(other);
    }
  raise(errc::internal, "TensorFlow's operator " + std::string(op_type) + " has no importer");
}

value activated(const node_context& c, value y, std::int64_t activation) {
  switch (activation) {
    case 0: return y;
    case 1: return y.relu();
    case 2: return c.build.add(op::clip{}, y, scalar_like(c, y, -1), scalar_like(c, y, 1));
    case 3: return c.build.add(op::clip{}, y, scalar_like(c, y, 0), scalar_like(c, y, 6));
    case 4: return y.tanh();
    default: c.unsupported("its activation is number " + std::to_string(activation));
  }
}

dtype declared_type(const node_context& c, std::size_t k) {
  const auto types = c.integers("output_types");
  const auto type = to_dtype(static_cast<onnx::element>(k < types.size() ? types[k] : 0));
  if (!type) c.unsupported("output " + std::to_string(k) + " is of a type that kiln's tensors do not hold");
  return *type;
}

std::span<const tflite_table> tflite_tables() {
  static const std::array tables{tflite_pointwise_operators(), tflite_layer_operators(),   tflite_view_operators(),
                                 tflite_index_operators(),     tflite_scatter_operators(), tflite_recurrent_operators(),
                                 tflite_detection_operators()};
  return tables;
}

std::vector<onnx::op_importer> tflite_importers() {
  std::vector<onnx::op_importer> out;
  for (const tflite_table table : tflite_tables())
    for (const tflite_operator& o : table) out.push_back({tflite_domain, o.name, 1, import_operator, o.note});
  return out;
}

}  // namespace kiln::tensorflow

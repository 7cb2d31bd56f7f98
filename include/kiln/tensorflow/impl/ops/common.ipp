#include "kiln/tensorflow/impl/ops/common.hpp"

namespace kiln::tensorflow {

variables as_onnx(node_context& c, std::string_view op_type, variables inputs,
                  std::vector<onnx::attribute> attributes) {
  const onnx::op_importer* const found = onnx::find_op_importer("", op_type, onnx::newest_opset);
  if (!found || !found->function) raise(errc::internal, "ONNX's operator " + std::string(op_type) + " has no importer");
  onnx::node n;
  n.name = c.source.name;
  n.op_type = op_type;
  n.outputs = c.source.outputs;
  n.attributes = std::move(attributes);
  for (std::size_t i = 0; i < inputs.size(); ++i) n.inputs.push_back(inputs[i] ? "given" : "");
  node_context other{c.build, n, onnx::newest_opset, std::move(inputs), c.bodies};
  return found->function(other);
}

bool has_last_channels(const node_context& c) {
  const std::string_view layout = c.text("data_format", "NHWC");
  if (layout == "NHWC" || layout == "NDHWC" || layout == "NWC") return true;
  if (layout == "NCHW" || layout == "NCDHW" || layout == "NCW") return false;
  c.unsupported("data_format is '" + std::string(layout) + "'");
}

}  // namespace kiln::tensorflow

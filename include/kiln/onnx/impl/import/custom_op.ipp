#include "kiln/graph/custom_op.hpp"
#include "kiln/onnx/custom_op_importers.hpp"
#include "kiln/onnx/op_importer.hpp"

namespace kiln::onnx {
namespace {

custom_attribute attribute_of(const node_context& c, const attribute& a) {
  switch (a.kind) {
    case attribute_kind::real: return {a.name, std::vector<float>{a.real}};
    case attribute_kind::integer: return {a.name, std::vector<std::int64_t>{a.integer}};
    case attribute_kind::text: return {a.name, std::vector<std::string>{a.text}};
    case attribute_kind::reals: return {a.name, a.reals};
    case attribute_kind::integers: return {a.name, a.integers};
    case attribute_kind::texts: return {a.name, a.texts};
    default: c.unsupported("attribute '" + a.name + "' of a custom op is no number, string or list of them");
  }
}

variables import_custom(node_context& c) {
  custom_attributes attributes;
  for (const attribute& a : c.source.attributes) attributes.push_back(attribute_of(c, a));
  small_vector<value_id> operands;
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (!c.has(i)) c.unsupported("input " + std::to_string(i) + " of a custom op is omitted");
    operands.push_back(c.in(i).id());
  }
  const custom_op named{c.source.domain, c.source.op_type, true, {}, {}};
  const value first = c.build.add_operation(make_custom_operation(named.name(), attributes), std::move(operands));
  variables out;
  const auto& made = c.build.module().producer(first.id());
  if (made.results.size() < c.source.outputs.size())
    c.unsupported("a custom op has an output for each of the node's: expected " +
                  std::to_string(c.source.outputs.size()) + ", found " + std::to_string(made.results.size()));
  for (std::uint32_t k = 0; k < made.results.size(); ++k) out.push_back(first.result(k));
  return out;
}

}  // namespace

std::vector<op_importer> custom_op_importers() {
  std::vector<op_importer> out;
  for (const custom_op* op : custom_ops()) out.push_back({op->domain, op->type, 1, import_custom});
  return out;
}

}  // namespace kiln::onnx

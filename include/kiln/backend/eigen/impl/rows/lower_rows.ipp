#include "kiln/backend/eigen/lower.hpp"
#include "kiln/backend/eigen/rows.hpp"

namespace kiln::eigen {
namespace {

// "softmax"-like bodies are named by their last few ops: enough to recognize a kernel in a report.
std::string describe(const module_graph& body, std::string_view kind) {
  std::string ops;
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < body.size(); ++i) {
    if (body[i].kind != instruction_kind::op || is_view(body[i])) continue;
    if (++count > 6) continue;
    ops += (ops.empty() ? "" : "+") + std::string(body[i].op.name());
  }
  if (count > 6) ops += "+" + std::to_string(count - 6);
  return std::string(kind) + " " + ops;
}

}  // namespace

std::unique_ptr<kernel> lower_rows(const kernel_request& r) {
  const operation& op = r.instruction.op;
  if (const auto* fused = op.get_if<op::fused>()) {
    if (fused->kind == fusion::contraction) return nullptr;
    const module_graph& body = r.whole.module(fused->body);
    // more operands than a row's loops hold: the body runs op by op
    if (r.inputs.size() + body.outputs.size() > row_loops::most_operands) return nullptr;
    return make_rows_kernel(body, describe(body, to_string(fused->kind)));
  }
  if (op.kind() != op_kind::pointwise && op.kind() != op_kind::reduction) return nullptr;
  module_graph body;
  small_vector<value_id> inputs;
  for (const shape& s : r.inputs) inputs.push_back(body.add_parameter("p", s));
  body.outputs.push_back(body.add_with_shapes(op, inputs, r.instruction.results));
  return make_rows_kernel(body, std::string(op.name()));
}

}  // namespace kiln::eigen

#include <algorithm>

#include "kiln/backend/eigen/lower.hpp"
#include "kiln/backend/eigen/rows.hpp"
#include "kiln/op/view/multibroadcast.hpp"

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

// The extents of operands before they are broadcast.
std::vector<dims> own_extents(const kernel_request& r) {
  std::vector<dims> own;
  for (std::size_t k = 0; k < r.inputs.size(); ++k) {
    own.push_back(r.inputs[k].lens);
    const auto& made = r.graph.producer(r.instruction.inputs[k]);
    if (made.kind != instruction_kind::op || !made.op.is<op::multibroadcast>()) continue;
    const dims& from = r.graph.shape_of(made.inputs[0]).lens;
    own.back() = dims(r.inputs[k].rank(), dimension(1));
    std::copy(from.begin(), from.end(), own.back().end() - static_cast<std::ptrdiff_t>(from.size()));
  }
  return own;
}

}  // namespace

std::unique_ptr<kernel> lower_rows(const kernel_request& r) {
  const operation& op = r.instruction.op;
  if (const auto* fused = op.get_if<op::fused>()) {
    if (fused->kind == fusion::contraction) return nullptr;
    const module_graph& body = r.whole.module(fused->body);
    // more operands than a row's loops hold: the body runs op by op
    if (r.inputs.size() + body.outputs.size() > row_loops::most_operands) return nullptr;
    return make_rows_kernel(body, describe(body, to_string(fused->kind)), own_extents(r));
  }
  if (op.kind() != op_kind::pointwise && op.kind() != op_kind::reduction) return nullptr;
  module_graph body;
  small_vector<value_id> inputs;
  for (const shape& s : r.inputs) inputs.push_back(body.add_parameter("p", s));
  body.outputs.push_back(body.add_with_shapes(op, inputs, r.instruction.results));
  return make_rows_kernel(body, std::string(op.name()));
}

}  // namespace kiln::eigen

#include "kiln/onnx/impl/import/rank_condition.hpp"

#include <algorithm>

#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/sequence.hpp"

namespace kiln::onnx {

value rank_condition(const import_state& s, const variable& tensor, module_frame& home) {
  if (tensor.possible_types.size() != 2) return {};
  const auto& made = home.build.module().producer(tensor.tensor.id());
  const auto* b = made.kind == instruction_kind::op ? made.op.get_if<op::branch>() : nullptr;
  if (!b) return {};
  const auto gives = [&](module_ref r, const shape& type) {
    const module_graph& body = s.bodies[r.index - 1];
    const auto& result = body.producer(body.outputs[tensor.tensor.id().result]);
    return result.kind == instruction_kind::op && result.op.is<op::make_optional>() && result.inputs.size() == 1 &&
           body.shape_of(result.inputs[0]).rank() == type.rank();
  };
  if (!gives(b->then_body, tensor.possible_types[0]) || !gives(b->else_body, tensor.possible_types[1])) return {};
  return home.build.wrap(made.inputs[0]);
}

// A module for one value of the condition has captured the condition as a constant.
std::optional<bool> has_first_type(const import_state& s, const entry& e) {
  if (e.held.possible_types.empty() || e.home == s.frame) return std::nullopt;
  value v = rank_condition(s, e.held, *e.home);
  if (!v) return std::nullopt;
  std::vector<module_frame*> inwards;
  for (module_frame* f = s.frame; f && f != e.home; f = f->outer) inwards.insert(inwards.begin(), f);
  for (module_frame* f : inwards) {
    const auto found =
        std::find_if(f->captured.begin(), f->captured.end(), [&](const auto& c) { return c.first.id() == v.id(); });
    if (found == f->captured.end()) return std::nullopt;
    v = found->second;
    const auto& made = f->build.module().producer(v.id());
    if (made.kind == instruction_kind::literal) return made.constant.at<bool>(0);
  }
  return std::nullopt;
}

variable narrowed(builder& b, variable tensor, const type_indices& kept) {
  shapes types;
  for (const std::size_t k : kept) types.push_back(tensor.possible_types[k]);
  if (types.size() == 1) return b.add(op::optional_get{types[0].type, types[0].lens}, tensor.tensor);
  tensor.possible_types = std::move(types);
  return tensor;
}

}  // namespace kiln::onnx

#include "kiln/runtime/contraction_parts.hpp"

namespace kiln {

std::optional<contraction_parts> split_contraction(const program& whole, const basic_instruction<operation>& ins,
                                                   const std::function<bool(std::size_t)>& is_constant) {
  contraction_parts out;
  if (ins.op.kind() == op_kind::contraction) {
    out.product = ins.op;
    return out;
  }
  const auto* fused = ins.op.get_if<op::fused>();
  if (!fused || fused->kind != fusion::contraction) return std::nullopt;
  const module_graph& body = whole.module(fused->body);
  std::uint32_t product = 0xffff'ffff;
  std::vector<std::size_t> index(body.size(), 0);
  std::size_t parameters = 0;
  for (std::uint32_t i = 0; i < body.size(); ++i) {
    if (body[i].kind == instruction_kind::parameter)
      index[i] = parameters++;
    else if (body[i].kind == instruction_kind::op && body[i].op.kind() == op_kind::contraction) {
      if (product != 0xffff'ffff) return std::nullopt;
      product = i;
    }
  }
  if (product == 0xffff'ffff || body.outputs.size() != 1) return std::nullopt;
  out.product = body[product].op;
  std::vector<bool> before(body.size(), false);  // what only the product's first operand hangs on
  for (std::size_t k = 0; k < 2; ++k) {
    const value_id v = body[product].inputs[k];
    if (body[v.instruction].kind == instruction_kind::parameter) {
      out.operands[k] = index[v.instruction];
      continue;
    }
    if (k != 0 || !is_constant) return std::nullopt;
    out.prologue = find_channel_prologue(body, v, is_constant);
    if (!out.prologue) return std::nullopt;
    out.operands[0] = out.prologue->data;
    before[v.instruction] = true;
    for (std::uint32_t i = v.instruction + 1; i-- > 0;)
      if (before[i] && body[i].kind == instruction_kind::op)
        for (value_id from : body[i].inputs) before[from.instruction] = true;
  }
  const auto read_behind = [&](std::uint32_t i) {
    for (std::uint32_t u = 0; u < body.size(); ++u)
      for (value_id v : body[u].inputs)
        if (v.instruction == i && u != product && !(before[u] && body[u].kind == instruction_kind::op)) return true;
    return false;
  };
  module_graph& tail = out.tail;
  std::vector<value_id> of(body.size());
  of[product] = tail.add_parameter("product", body[product].results[0]);
  for (std::uint32_t i = 0; i < body.size(); ++i) {
    if (i == product || (before[i] && body[i].kind == instruction_kind::op)) continue;
    if (body[i].kind != instruction_kind::op && !read_behind(i)) continue;
    if (body[i].kind == instruction_kind::literal) {
      of[i] = tail.add_literal(body[i].constant);
      continue;
    }
    if (body[i].kind == instruction_kind::parameter) {
      of[i] = tail.add_parameter(body[i].name, body[i].results[0]);
      out.extra.push_back(index[i]);
      continue;
    }
    small_vector<value_id> inputs;
    for (value_id v : body[i].inputs) {
      if (before[v.instruction] && body[v.instruction].kind == instruction_kind::op) return std::nullopt;
      inputs.push_back(of[v.instruction]);
    }
    of[i] = tail.add_with_shapes(body[i].op, inputs, body[i].results);
  }
  tail.outputs.push_back(of[body.outputs[0].instruction]);
  out.tailed = body.outputs[0].instruction != product;
  return out;
}

}  // namespace kiln

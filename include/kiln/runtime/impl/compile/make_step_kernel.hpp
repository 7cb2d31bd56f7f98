#pragma once
#include <algorithm>

#include "kiln/lower/layout_plan.hpp"
#include "kiln/lower/views.hpp"
#include "kiln/pass/constants.hpp"
#include "kiln/runtime/custom_kernel.hpp"
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/impl/plan/plan.hpp"
#include "kiln/runtime/widened_constant.hpp"

namespace kiln::detail {

/// The layouts of a program's results by the target's roles; NCHW alone where NHWC is not allowed.
inline lower::layout_plan<program> plan_layouts(const program& p, const target& t, const plan_choices& choices) {
  if (!choices.allow_nhwc) return lower::layout_plan(p);
  return {p, [&](const auto& instruction) {
            const auto role = [&] { return t.role(p, instruction); };
            if (!choices.derived) return role();
            return static_cast<lower::layout_role>(choices.derived->decide(lower::layout_roles, role));
          }};
}

/// The constant that a value is, or shows through views that need no copy; `where` becomes its layout.
inline const literal* constant_of(const module_graph& graph, value_id v, layout& where) {
  const auto& ins = graph.producer(v);
  if (ins.kind == instruction_kind::literal) {
    where = layout::standard(ins.results[0].lens);
    return ins.constant.has_symbols() ? nullptr : &ins.constant;
  }
  if (!is_view(ins)) return nullptr;
  const literal* constant = constant_of(graph, ins.inputs[0], where);
  if (!constant) return nullptr;
  const auto mapped = ins.op.map(where);
  if (!mapped) return nullptr;
  where = *mapped;
  return constant;
}

/// A constant in f32.
inline literal widened_literal(const module_graph& graph, const widened_constant& w) {
  const dims& lens = w.from->get_shape().lens;
  const layout whole = layout::standard(lens);
  return fold_laid_out(graph[w.by].op, std::span(&w.from, 1), std::span(&whole, 1), shape(dtype::f32, lens));
}

/// The kernel of an instruction that computes: the target's, or the reference computation. `widened` has the
/// conversions of large constants that kernels pack as they are stored, or else get in f32.
inline std::unique_ptr<kernel> make_step_kernel(const program& p, std::uint32_t i, const target& t,
                                                const lower::layout_plan<program>& layouts, thread_pool& pool,
                                                const plan_choices& choices, constant_memory& memory,
                                                std::span<const std::uint32_t> widened = {}) {
  const module_graph& graph = p.main();
  const auto& ins = graph[i];
  kernel_request request{
      p,       graph,          ins, {}, {}, {}, {}, layouts.nhwc({i, 0}), &pool, choices.tuning, choices.near_constants,
      &memory, choices.derived};
  small_vector<std::size_t> stored;  // inputs
  for (value_id v : ins.inputs) {
    layout where;
    request.constants.push_back(constant_of(graph, v, where));
    const widened_constant w = widened.empty() ? widened_constant() : find_widened_constant(graph, v);
    if (w && std::find(widened.begin(), widened.end(), w.by) != widened.end())
      stored.push_back(request.inputs.size()), where = w.at;
    request.constant_layouts.push_back(where);
    request.inputs.push_back(graph.shape_of(v));
    request.nhwc.push_back(layouts.nhwc(v));
  }
  std::unique_ptr<kernel> made;
  if (!stored.empty()) {
    derived_data derived;
    request.derived = &derived;
    made = t.make_kernel(request);
    request.derived = choices.derived;
    if (!made || !std::all_of(stored.begin(), stored.end(), [&](std::size_t k) { return made->packed_input(k); }))
      made.reset();
    else if (choices.derived)
      choices.derived->append(std::move(derived));
  }
  std::vector<literal> in_f32;
  in_f32.reserve(stored.size());
  if (!made) {
    for (const std::size_t k : stored)
      request.constants[k] = &in_f32.emplace_back(widened_literal(graph, find_widened_constant(graph, ins.inputs[k])));
    made = t.make_kernel(request);
  }
  if (!made && ins.op.is<op::fused>()) made = make_body_kernel(p.module(ins.op.body()));
  if (!made) made = make_custom_kernel(ins.op);
  if (!made) made = make_fallback_kernel(ins.op);
  return t.has_device() && !made->on_device() ? make_kernel_on_host(std::move(made)) : std::move(made);
}

}  // namespace kiln::detail

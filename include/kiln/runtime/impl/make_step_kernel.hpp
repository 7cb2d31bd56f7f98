#pragma once
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/impl/image_formats.hpp"
#include "kiln/runtime/impl/plan.hpp"

namespace kiln::detail {

/// The kernel of an instruction that computes: the target's, or the reference computation.
inline std::unique_ptr<kernel> make_step_kernel(const program& p, std::uint32_t i, const target& t,
                                                const image_formats& formats, thread_pool& pool,
                                                const plan_choices& choices, constant_memory& memory) {
  const module_graph& graph = p.main();
  const auto& ins = graph[i];
  kernel_request request{
      p,      graph, ins, {}, {}, {}, {}, formats.channels_last({i, 0}), &pool, choices.tuning, choices.near_constants,
      &memory};
  for (value_id v : ins.inputs) {
    layout where;
    request.constants.push_back(constant_behind(graph, v, where));
    request.constant_layouts.push_back(where);
    request.inputs.push_back(graph.shape_of(v));
    request.channels_last.push_back(formats.channels_last(v));
  }
  std::unique_ptr<kernel> made = t.make_kernel(request);
  if (!made && ins.op.is<op::fused>()) made = make_body_kernel(p.module(ins.op.body()));
  if (!made) made = make_fallback_kernel(ins.op);
  return t.has_device() && !made->on_device() ? make_host_step(std::move(made)) : std::move(made);
}

}  // namespace kiln::detail

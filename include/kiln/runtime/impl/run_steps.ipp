#include <algorithm>
#include <chrono>

#include "kiln/runtime/impl/executable_state.hpp"
#include "kiln/runtime/run_options.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;

std::size_t bytes_of(std::span<const tensor> out) {
  std::size_t bytes = 0;
  for (const tensor& t : out) bytes += static_cast<std::size_t>(t.elements()) * size_of(t.type);
  return bytes;
}

}  // namespace

void executable::state::run_steps(workspace::state& w, const run_options& options) const {
  const std::span<std::byte> scratch(w.arena.data() + w.scratch_offset, w.scratch_bytes);
  const bool watched = options.profile || options.observe;  // step by step
  auto group = w.beside.groups.begin();
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    if (!watched && group != w.beside.groups.end() && group->of->first == i) {
      run_group(w, *group, options);
      i = group++->of->last - 1;
      continue;
    }
    const auto start = options.profile ? clock::now() : clock::time_point();
    run_step(w, i, scratch, options);
    if (options.profile) options.profile(i, std::chrono::duration<double>(clock::now() - start).count());
    if (options.observe) {
      const detail::step& st = plan.steps[i];
      options.observe(i, std::span<const tensor>(w.tensors.data() + st.first_operand + st.inputs, st.outputs));
    }
  }
}

void executable::state::run_step(const workspace::state& w, std::uint32_t i, std::span<std::byte> scratch,
                                 const run_options& options) const {
  if (options.cancel && options.cancel->load(std::memory_order_relaxed))
    raise(errc::cancelled, "the run was stopped before step " + std::to_string(i));
  const detail::step& st = plan.steps[i];
  const std::span<const tensor> all(w.tensors.data() + st.first_operand, st.inputs + st.outputs);
  const std::span<const tensor> out = all.subspan(st.inputs);
  try {
    st.run->run(
        {all.first(st.inputs), out, scratch, pool.get(), &w.values, st.last_touch && bytes_of(out) >= most_cached});
  } catch (error& e) {
    e.at_instruction(report.steps[i].instruction);
    throw;
  }
}

void executable::state::run_group(workspace::state& w, const detail::branch_choice::group& g,
                                  const run_options& options) const {
  const bool few = g.order.size() <= pool->size();  // then each branch has its own scratch, else each worker
  pool->parallel_branches(static_cast<std::int64_t>(g.order.size()), [&](std::int64_t task, unsigned worker) {
    const std::size_t own = few ? static_cast<std::size_t>(task) : worker;
    const std::span<std::byte> scratch(w.arena.data() + w.scratch_offset + own * g.scratch, g.scratch);
    for (const std::uint32_t i : g.of->branches[g.order[static_cast<std::size_t>(task)]])
      run_step(w, i, scratch, options);
  });
}

}  // namespace kiln
